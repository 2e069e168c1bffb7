import { objectOf, textOf } from './json.ts'

/** Error types of the messages protocol by status (interface: Errors, Messages). */
const TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}

/** Clients of the messages protocol make room in a conversation only when an error reads like this. */
const TOO_LONG = 'prompt is too long'
const CONTEXT_OVERFLOWS = new Set(['context_length_exceeded', 'string_above_max_length'])
const LONGEST_MESSAGE = 4_096

/**
 * An error answer of a chat completions upstream in the envelope of the messages protocol.
 * @param status of the answer, which is kept. @param body as it came, JSON or not.
 */
export function messagesErrorBody(status: number, body: Uint8Array): Uint8Array {
  const error = upstreamError(body)
  const told = textOf(error.message) || `The upstream answered with status ${status}.`
  const overflow = CONTEXT_OVERFLOWS.has(textOf(error.code)) && !told.includes(TOO_LONG)
  const message = overflow ? `${TOO_LONG}: ${told}` : told
  const type = TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
  return new TextEncoder().encode(
    JSON.stringify({ type: 'error', error: { type, message: message.slice(0, LONGEST_MESSAGE) } }),
  )
}

/** `{ error: { message } }` as a rule; some servers put the message beside, or send text. */
function upstreamError(body: Uint8Array): Record<string, unknown> {
  try {
    const parsed = objectOf(JSON.parse(new TextDecoder().decode(body)))
    if (typeof parsed.error === 'string') return { message: parsed.error }
    return parsed.error ? objectOf(parsed.error) : { message: parsed.message ?? parsed.detail }
  } catch {
    return {}
  }
}
