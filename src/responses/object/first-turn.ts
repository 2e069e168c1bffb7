import { interruptedOutcome } from '../../gateway/call-outcome.ts'
import { TimeLimitError, withinTime } from '../../lib/time-limit.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { ResponseState } from '../store/response-state.ts'
import type { AdmittedResponse } from './admit-response.ts'

/**
 * Sends the first turn of an admitted response, and waits until its answer begins. A provider's refusal can then be an HTTP
 * error, on which official SDKs repeat the request. A stream waits for RESPONSE_COMMIT_MS, a whole answer for as long as it
 * takes. A response in the background does not wait, nor one that begins with calls that its request approves.
 * @returns the failure of a turn that generated nothing: its call is closed, and the caller has to roll back. Otherwise
 *   null: the engine runs.
 */
export async function dispatchFirstTurn(
  { configuration }: ResponseDeps,
  { engine, settings, phase }: AdmittedResponse,
): Promise<Error | null> {
  const { RESPONSE_COMMIT_MS: commit, RESPONSE_TIME_LIMIT_MS } = configuration
  if (settings.background === true || commit === 0 || phase === 'running_tools') return null
  const longest = settings.stream === true ? commit : RESPONSE_TIME_LIMIT_MS
  try {
    const error = await withinTime(engine.dispatch(), longest, 'the first turn')
    if (error) await engine.closeRefused()
    return error
  } catch (error) {
    if (error instanceof TimeLimitError) return null
    throw error
  }
}

/** Closes the call of a response whose object restarted while its first turn was dispatched. */
export function closeAbandoned(state: ResponseState, now: number): void {
  const { progress, unsettled } = state.known
  if (!progress.openCall) return
  const { open } = progress.openCall
  const call = { call: open.call, outcome: interruptedOutcome(open, 0, now) }
  state.change({ progress: { ...progress, openCall: null }, unsettled: [...unsettled, call] })
}
