import { initialResponse, outputTextOf } from '../../responses/model/response-members.ts'
import { agentModel } from '../../wire/agent-model.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { ResponseObject, ResponseUsage } from '../../wire/responses.ts'
import type { RunMetadata } from '../runs/run-inputs.ts'
import type { RunView } from './run-view.store.ts'

/** A run with what its response shows of the request. */
export interface RequestedRun extends RunView {
  metadata: RunMetadata
}

/** The prefix of response ids of runs (interface: Response object). */
const PREFIX = 'resp_run_'

const runResponseId = (runId: string): string => `${PREFIX}${runId}`

/** Whether an id is one of a run's response, of any form. */
export const isRunResponseId = (responseId: string): boolean => responseId.startsWith(PREFIX)

/** The id of a run; null for an id that no run can have. */
export function runIdOf(responseId: string): string | null {
  const runId = responseId.slice(PREFIX.length).toLowerCase()
  return isRunResponseId(responseId) && isUuid(runId) ? runId : null
}

/** A run as a response before its first step: in progress, without output. @param compatibility of its reader. */
export const beginningOfRun = (run: RequestedRun, compatibility: Compatibility): ResponseObject =>
  initialResponse({ model: agentModel(run.agentId), background: true, metadata: run.metadata }, [], {
    responseId: runResponseId(run.id),
    createdAt: run.createdAt.getTime(),
    conversationId: run.conversationId,
    compatibility,
  })

/**
 * A run as a response. The output has the items of all attempts, in order, so that it is that of the stream: an attempt that
 * is repeated has left it by the time that it fails.
 * @param attempts the responses of its attempts, in order, as their owner may read them.
 */
export function runResponse(
  run: RequestedRun,
  attempts: readonly ResponseObject[],
  compatibility: Compatibility,
): ResponseObject {
  const output = attempts.flatMap((attempt) => attempt.output)
  const isEnded = run.status !== 'in_progress'
  return {
    ...beginningOfRun(run, compatibility),
    ...ENDS[run.status](run),
    completed_at: run.status === 'success' ? Math.floor((run.endedAt?.getTime() ?? 0) / 1_000) : null,
    output,
    output_text: outputTextOf(output),
    usage: isEnded ? totalUsage(attempts) : null,
  }
}

type End = Pick<ResponseObject, 'status' | 'error' | 'incomplete_details'>

const NO_END = { error: null, incomplete_details: null }

/** The status of a response by that of its run (interface: Run status, Response status). */
const ENDS: Readonly<Record<RunView['status'], (run: RunView) => End>> = {
  in_progress: () => ({ ...NO_END, status: 'in_progress' }),
  success: () => ({ ...NO_END, status: 'completed' }),
  failure: ({ error }) => ({ ...NO_END, status: 'failed', error: error ?? UNKNOWN_ERROR }),
  // The reasons that responses have for the same ends.
  cancelled: ({ error }) => ({
    ...NO_END,
    status: 'incomplete',
    incomplete_details: { reason: error?.code === 'timeout' ? 'max_time' : 'cancelled' },
  }),
}

const UNKNOWN_ERROR = { code: 'server_error', message: 'The run failed.' }

const NO_USAGE: ResponseUsage = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
}

function totalUsage(attempts: readonly ResponseObject[]): ResponseUsage {
  return attempts.reduce<ResponseUsage>((sum, { usage }) => (usage ? added(sum, usage) : sum), NO_USAGE)
}

const added = (left: ResponseUsage, right: ResponseUsage): ResponseUsage => ({
  input_tokens: left.input_tokens + right.input_tokens,
  input_tokens_details: {
    cached_tokens: left.input_tokens_details.cached_tokens + right.input_tokens_details.cached_tokens,
    cache_write_tokens:
      left.input_tokens_details.cache_write_tokens + right.input_tokens_details.cache_write_tokens,
  },
  output_tokens: left.output_tokens + right.output_tokens,
  output_tokens_details: {
    reasoning_tokens:
      left.output_tokens_details.reasoning_tokens + right.output_tokens_details.reasoning_tokens,
  },
  total_tokens: left.total_tokens + right.total_tokens,
})
