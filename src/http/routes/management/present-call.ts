import type { CallRow } from '../../../ledger/records/extracted-rows.ts'

/** A call as lists show it. */
export const presentCall = (row: CallRow) => ({
  id: row.id,
  at: row.at,
  request_id: row.requestId,
  user_id: row.userId,
  key_id: row.keyId,
  surface: row.surface,
  action: row.action,
  model: row.modelId,
  tool: row.tool,
  connection_id: row.connectionId,
  provider: row.provider,
  response_id: row.responseId,
  run_id: row.runId,
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
