import { TurnFailure } from '../../gateway/calls/turn-failure.ts'
import type { StopReason } from '../../gateway/translation/model-events.ts'
import { ApiError } from '../../lib/api-error.ts'
import { counted } from '../../lib/counted.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { isCut } from '../emitter/emitter.ts'

/** How a response ends, as its object tells it. */
export type ResponseEnd =
  | { status: 'completed' }
  | { status: 'incomplete'; reason: string }
  | { status: 'failed'; error: { code: string; message: string } }

/** The end of one that is incomplete, and why. */
export const incomplete = (reason: string): ResponseEnd => ({ status: 'incomplete', reason })

/** What a stop of the model comes to. An upstream that named none has ended its answer whole all the same. */
export function endOfStop(stop: StopReason | null): ResponseEnd {
  return isCut(stop) ? incomplete('max_output_tokens') : { status: 'completed' }
}

/**
 * What an error comes to that a turn threw.
 * @param later whether a turn was paid for already: then running out of credits is a limit, not a refusal.
 */
export function endOfFailure(error: unknown, later: boolean): ResponseEnd {
  if (error instanceof TurnFailure) {
    const { code, message, retryAfterSeconds: seconds } = error
    const told = seconds === undefined ? message : `${message} Try again in ${counted(seconds, 'second')}.`
    return { status: 'failed', error: { code, message: told } }
  }
  if (error instanceof ApiError) {
    if (later && error.kind === 'rate_limited') return incomplete('insufficient_credits')
    return { status: 'failed', error: { code: error.code ?? 'stream_error', message: error.message } }
  }
  logEvent('error', 'response_failed', { error: errorText(error) })
  return { status: 'failed', error: { code: 'internal_error', message: 'Something went wrong.' } }
}
