import { type Json, listOf, objectOf, textOf } from '../protocols/json.ts'

/** Error answers as vendors and servers of both protocols send them, read into `message`, `code` and `type`. */

/** The longest text of a message that its sender has put into an object. */
const LONGEST_OBJECT_TEXT = 1_000
/** The most entries of a list of faults that become the message. */
const MOST_FAULTS = 10

/** @param body of an error answer, JSON or not. @returns `message`, and `code` and `type` where it has them. */
export function upstreamError(body: Uint8Array): Json {
  return errorIn(parsedBody(body))
}

/** The members of a JSON object, also of one in a list, as Google wraps its errors; none for any other body. */
export function parsedBody(body: Uint8Array): Json {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body))
    return objectOf(Array.isArray(value) ? value[0] : value)
  } catch {
    return {}
  }
}

/**
 * Usually `{ error: { message } }`. Others have the message at the top, as `Message` (AWS) or `detail` (FastAPI), or a
 * text as the error, with its code beside it (xAI).
 */
export function errorIn(body: Json): Json {
  const { error } = body
  if (typeof error === 'string') return { ...namesOf(body), message: textOf(body.message) || error }
  if (!error) return { ...namesOf(body), message: messageText(body.message ?? body.Message ?? body.detail) }
  const members = objectOf(error)
  const { message } = members
  return typeof message === 'object' && message !== null
    ? { ...members, message: messageText(message) }
    : members
}

/** The code and type of an error without an object of its own. */
function namesOf({ code, type, error, message }: Json): Json {
  const named = typeof code === 'string' || typeof code === 'number' ? { code } : {}
  // A text beside `message` names the error.
  const kind = textOf(message) && textOf(error) ? error : type
  return { ...named, ...(typeof kind === 'string' && { type: kind }) }
}

/** The text of a message; one that is a list or an object, as Mistral's, has its faults in it. */
function messageText(message: unknown): unknown {
  if (typeof message !== 'object' || message === null) return message
  const { detail, message: inner } = objectOf(message)
  if (typeof detail === 'string' || typeof inner === 'string') return detail ?? inner
  const faults = listOf(Array.isArray(message) ? message : detail).slice(0, MOST_FAULTS)
  const texts = faults.map(faultText).filter((text) => text !== '')
  return texts.length > 0 ? texts.join('; ') : JSON.stringify(message).slice(0, LONGEST_OBJECT_TEXT)
}

/** A fault as FastAPI lists it: the path of the member, and what is wrong (https://fastapi.tiangolo.com/tutorial/handling-errors). */
function faultText({ loc, msg, message }: Json): string {
  const text = textOf(msg) || textOf(message)
  const path = Array.isArray(loc) ? loc.filter((step) => step !== 'body').join('.') : ''
  return path && text ? `${path}: ${text}` : text
}

/** https://cloud.google.com/apis/design/errors#error_details */
const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'

/**
 * The wait that Google requests in the body of an error.
 * @param body of an error answer, JSON or not. @returns milliseconds; null when it requests none.
 */
export function waitInBody(body: Uint8Array): number | null {
  if (body.length > LONGEST_WITH_WAIT || !new TextDecoder().decode(body).includes(RETRY_INFO)) return null
  const { details } = upstreamError(body)
  const info = listOf(details).find((detail) => detail['@type'] === RETRY_INFO)
  const seconds = /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(textOf(info?.retryDelay))?.[1]
  return seconds === undefined ? null : Math.ceil(Number(seconds) * 1_000)
}

const LONGEST_WITH_WAIT = 100_000
