import type { OpenCallRow } from '../../../admin/calls-tail.ts'
import type { CallRow } from '../../../ledger/records/extracted-rows.ts'

/** What is known of a call at its admission. */
export const presentOpenCall = (row: OpenCallRow) => ({
  id: row.id,
  at: row.at,
  request_id: row.requestId,
  user_id: row.userId,
  key_id: row.keyId,
  surface: row.surface,
  action: row.action,
  model: row.modelId,
  tool: row.tool,
  response_id: row.responseId,
  run_id: row.runId,
})

/** A call as lists show it. */
export const presentCall = (row: CallRow) => ({
  ...presentOpenCall(row),
  connection_id: row.connectionId,
  provider: row.provider,
  status: row.status,
  error: row.errorCode,
  outcome: row.outcome,
  flags: row.flags ?? [],
  found: row.detectors ?? [],
  duration_ms: row.durationMilliseconds,
  first_event_ms: row.firstEventMilliseconds,
  input_tokens: row.inputTokens,
  output_tokens: row.outputTokens,
  cost: row.cost,
  count: row.count,
})
