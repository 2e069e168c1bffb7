import type { ModelAnswer } from '../calls/model-call.ts'
import { OPERATIONS } from '../operations.ts'
import type { Candidate } from '../routes/call-routes.ts'
import { messagesErrorBody } from '../translation/upstream-errors.ts'
import { answerHeaders } from './answer-headers.ts'

const DEFAULT_RETRY_SECONDS = '1'

/**
 * An upstream's error for the caller: unchanged in body and content type for callers of chat completions and of the same
 * protocol, others get their own envelope (interface: Errors).
 * @param body as it came, but for our own credential.
 */
export function upstreamErrorAnswer(
  response: Response,
  body: Uint8Array,
  candidate: Candidate,
): ModelAnswer & { body: Uint8Array } {
  const { status } = response
  const headers = answerHeaders(response.headers, candidate.provider.credential)
  // Interface, Limits: every 429 says when to come back, also when the upstream does not.
  const retryAfter = headers['retry-after'] ?? null
  if (status === 429 && !(Number(retryAfter) >= 1 || isDate(retryAfter))) {
    headers['retry-after'] = DEFAULT_RETRY_SECONDS
  }
  if (!(candidate.translation && OPERATIONS[candidate.translation.caller].ownErrorEnvelope))
    return { status, headers, body }
  headers['content-type'] = 'application/json'
  return { status, headers, body: messagesErrorBody(status, body) }
}

const isDate = (text: string | null) =>
  text !== null && Number.isNaN(Number(text)) && !Number.isNaN(Date.parse(text))
