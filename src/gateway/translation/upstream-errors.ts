import { malformedTurn } from '../protocols/converse-endings.ts'
import { blockedPrompt, malformedAnswer } from '../protocols/generate-content-endings.ts'
import { isPresent, type Json, listOf, objectOf, textOf } from '../protocols/json.ts'
import { isOverload, OVERLOADED } from '../protocols/overload.ts'
import type { UpstreamProtocol } from '../protocols/protocol.ts'
import { errorIn, parsedBody, upstreamError } from './error-shapes.ts'

/**
 * Error types of the messages protocol by status (interface: Errors, Messages). Its vendor adds 529
 * (https://docs.anthropic.com/en/api/errors), on which official clients wait longer.
 */
const TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  // A model that took too long, and one that failed behind its platform (AWS), are no mistakes of the caller.
  408: 'api_error',
  413: 'request_too_large',
  424: 'api_error',
  429: 'rate_limit_error',
  529: OVERLOADED,
}
/** Statuses of error codes and types of both protocols, as their vendors send them. */
const STATUSES: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['context_length_exceeded', 400],
  ['string_above_max_length', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['insufficient_quota', 429],
  ['api_error', 500],
  ['server_error', 500],
  ['timeout_error', 504],
])

/** Clients of the messages protocol compact a conversation only on an error with these words. */
const TOO_LONG = 'prompt is too long'
const CONTEXT_OVERFLOWS = new Set(['context_length_exceeded', 'string_above_max_length'])
/**
 * Words of services without those codes: OpenAI's, which vLLM and Mistral have too, then those of xAI, AWS, Google and
 * llama.cpp.
 */
const OVERFLOW_WORDS = new RegExp(
  [
    'maximum (context|prompt) length',
    'input is too long for requested model',
    'exceeds the maximum number of tokens',
    'exceeds the available context size',
  ].join('|'),
  'i',
)
const LONGEST_MESSAGE = 4_096

/**
 * An error answer of an upstream in the envelope of the messages protocol.
 * @param status of the answer, which stays the same. @param body JSON or not. @param requestId of the gateway.
 * @returns the same array for a body that has the envelope.
 */
export function messagesErrorBody(status: number, body: Uint8Array, requestId: string): Uint8Array {
  if (hasMessagesEnvelope(body)) return body
  const error = upstreamError(body)
  const text = providerMessage(status, error)
  const message = isContextOverflow(error) && !text.includes(TOO_LONG) ? `${TOO_LONG}: ${text}` : text
  const byStatus = TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
  const type = isOverload(error) ? OVERLOADED : byStatus
  return new TextEncoder().encode(
    JSON.stringify({
      type: 'error',
      error: { type, message: message.slice(0, LONGEST_MESSAGE) },
      request_id: requestId,
    }),
  )
}

/**
 * The message of a provider's error. The message of a 429 begins with the owner of the limit, because callers have
 * limits of their own.
 */
export function providerMessage(status: number, { message }: Json): string {
  const text = textOf(message) || `The upstream answered with status ${status}.`
  return status !== 429 || text.startsWith(PROVIDERS_LIMIT) ? text : `${PROVIDERS_LIMIT}: ${text}`
}

const PROVIDERS_LIMIT = "A limit of the model's provider is reached"

function hasMessagesEnvelope(body: Uint8Array): boolean {
  const { type, error } = parsedBody(body)
  const { type: kind, message } = objectOf(error)
  return type === 'error' && textOf(kind) !== '' && textOf(message) !== ''
}

/**
 * The status of an error that its provider sent with status 200, by its code or type.
 * @returns null for an error without a known one.
 */
export function impliedStatus(error: Json): number | null {
  if (isOverload(error)) return 529
  const { code, type } = error
  // Servers such as vLLM and OpenRouter send the status as the code.
  const numeric = /^[45]\d\d$/.test(String(code)) ? Number(code) : undefined
  return numeric ?? STATUSES.get(code) ?? STATUSES.get(type) ?? null
}

/** Flagged content, as OpenRouter and gateways like it refuse it with the status of a refused credential. */
const FLAGGED_WORDS = /moderation|flagged|content.?(policy|filter)|ResponsibleAI|safety/i
/** The provider refuses the credential of the gateway, its account, or the place it calls from. */
const REFUSALS = new Set([401, 402, 403])

export const isRefusalStatus = (status: number): boolean => REFUSALS.has(status)

/** Whether an error answer refuses the gateway itself, and not the contents of the request. */
export function refusesGateway(status: number, body: Uint8Array): boolean {
  if (status === 400) return hasInvalidKey(upstreamError(body))
  if (status !== 403) return isRefusalStatus(status)
  const { message, code, type, innererror, metadata } = upstreamError(body)
  // https://openrouter.ai/docs/api/reference/errors-and-debugging: what was flagged stands beside the message.
  if (isPresent(objectOf(metadata).flagged_input)) return false
  return ![message, code, type, objectOf(innererror).code].some((text) => FLAGGED_WORDS.test(textOf(text)))
}

/** Google answers 400 to a key that it does not know (https://cloud.google.com/apis/design/errors#error_info). */
const hasInvalidKey = ({ details }: Json): boolean =>
  listOf(details).some(({ reason }) => reason === 'API_KEY_INVALID')

/** Codes of errors that say nothing about the request: the deployment or model of the route does not exist. */
const MISSING_MODEL = new Set(['model_not_found', 'deploymentnotfound', 'invalid_model'])
/** The model's own tool call was no valid one (https://console.groq.com/docs/tool-use). */
const FAILED_TOOL_USE = 'tool_use_failed'

/** OpenRouter's 404 for a request that none of the model's providers takes: it is no sign for other calls. */
const LACKS_FEATURE = /^no endpoints found that support/i

/** Whether an error answer says that the address, deployment or model of the route is not there. */
export function lacksModel(status: number, body: Uint8Array): boolean {
  const error = upstreamError(body)
  if (status !== 400) return status === 404 && !LACKS_FEATURE.test(textOf(error.message))
  // DeepSeek has no code for it.
  return namesOf(error).some((name) => MISSING_MODEL.has(name)) || textOf(error.message) === 'Model Not Exist'
}

/** Whether an error answer with the status of a faulty request is a fault of the route: another route may answer. */
export const isRouteFault = (status: number, body: Uint8Array): boolean =>
  status === 404 ||
  lacksModel(status, body) ||
  (status === 400 &&
    (namesOf(upstreamError(body)).includes(FAILED_TOOL_USE) || hasInvalidKey(upstreamError(body))))

const namesOf = ({ code, type }: Json): string[] => [code, type].map((name) => textOf(name).toLowerCase())

/** Whether the conversation was too long for the model, by an error of either protocol. */
export function isContextOverflow(error: Json): boolean {
  const text = textOf(error.message)
  return CONTEXT_OVERFLOWS.has(textOf(error.code)) || OVERFLOW_WORDS.test(text) || text.includes(TOO_LONG)
}

/** How an answer of a protocol is told from an error, and an answer that cannot be used from others. */
interface AnswerForm {
  isAnswer(body: Json): boolean
  /** The message of an answer that cannot be used; null for any other. */
  malformed?(body: Json): string | null
}

const hasItems = (value: unknown): boolean => Array.isArray(value) && value.length > 0

const ANSWERS: Record<UpstreamProtocol, AnswerForm> = {
  chat_completions: { isAnswer: ({ choices }) => hasItems(choices) },
  messages: { isAnswer: ({ content }) => Array.isArray(content) },
  generate_content: {
    isAnswer: (body) => hasItems(body.candidates) || blockedPrompt(body) !== null,
    malformed: malformedAnswer,
  },
  converse: {
    isAnswer: ({ output }) => Array.isArray(objectOf(objectOf(output).message).content),
    malformed: ({ stopReason }) => malformedTurn(stopReason),
  },
}

/**
 * The error that an upstream sends with status 200 in place of a whole answer, as some do when they fail late.
 * @param body parsed. @returns null for an answer.
 */
export function errorInsteadOfAnswer(body: Json, upstream: UpstreamProtocol): string | null {
  const { isAnswer, malformed } = ANSWERS[upstream]
  const unusable = malformed?.(body) ?? null
  if (unusable !== null) return unusable
  if (isAnswer(body) && !isPresent(body.error)) return null
  const message = isPresent(body.error) ? textOf(errorIn(body).message) : ''
  return message || 'The upstream sent JSON that is no answer.'
}
