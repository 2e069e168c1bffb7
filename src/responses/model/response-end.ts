import { MAX_CREDITS } from '../../calls/governed-call.ts'
import { TurnFailure } from '../../gateway/calls/turn-failure.ts'
import type { StopReason } from '../../gateway/translation/model-events.ts'
import { ApiError } from '../../lib/api-error.ts'
import { counted } from '../../lib/counted.ts'
import { errorText, logEvent } from '../../lib/log.ts'

/** The end of a response. */
export type ResponseEnd =
  | { status: 'completed' }
  | { status: 'incomplete'; reason: string }
  | { status: 'failed'; error: { code: string; message: string } }

export const incomplete = (reason: string): ResponseEnd => ({ status: 'incomplete', reason })

/** Whether a stop reason means that the model's output was cut off. */
export const isCut = (stop: StopReason | null): boolean => stop === 'length' || stop === 'context_window'

/** An answer without a stop reason counts as complete. */
export function endOfStop(stop: StopReason | null): ResponseEnd {
  return isCut(stop) ? incomplete('max_output_tokens') : { status: 'completed' }
}

/**
 * The end of a response in which a turn threw an error.
 * @param later whether an earlier call was charged: then running out of credits is a limit and not a refusal. The limit of a
 *   run always is.
 */
export function endOfFailure(error: unknown, later: boolean): ResponseEnd {
  if (error instanceof TurnFailure) {
    const { code, message, retryAfterSeconds: seconds } = error
    const retry = seconds === undefined ? '' : ` Try again in ${counted(seconds, 'second')}.`
    return { status: 'failed', error: { code, message: `${message}${retry}` } }
  }
  if (error instanceof ApiError) {
    if (error.code === MAX_CREDITS) return incomplete(MAX_CREDITS)
    if (later && error.limit === 'credits') return incomplete('insufficient_credits')
    return { status: 'failed', error: { code: error.code ?? 'stream_error', message: error.message } }
  }
  logEvent('error', 'response_failed', { error: errorText(error) })
  return { status: 'failed', error: { code: 'internal_error', message: 'Something went wrong.' } }
}
