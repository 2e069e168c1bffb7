import type { Fault } from './checks/fault.ts'
import { type Dialect, jsonReply, type Reply } from './reply.ts'

export interface OpenAiFault {
  message: string
  type?: string
  param?: string | null
  code?: string | null
}

/** The JSON text of an OpenAI error body; all four members are always present. */
export function openAiErrorBody({
  message,
  type = 'invalid_request_error',
  param = null,
  code = null,
}: OpenAiFault): string {
  return JSON.stringify({ error: { message, type, param, code } })
}

/** The JSON text of an Anthropic error body, which repeats the request id of the header; details are rare. */
export function anthropicErrorBody(
  type: string,
  message: string,
  requestId: string,
  details?: Record<string, unknown>,
): string {
  const error = details === undefined ? { type, message } : { type, message, details }
  return JSON.stringify({ type: 'error', error, request_id: requestId })
}

/** An OpenAI error answer with the vendor's headers. */
export function openAiError(status: number, fault: OpenAiFault): Reply {
  return jsonReply('chat', status, openAiErrorBody(fault))
}

/** An Anthropic error answer with the vendor's headers. */
export function anthropicError(
  status: number,
  type: string,
  message: string,
  details?: Record<string, unknown>,
): Reply {
  const reply = jsonReply('messages', status, '')
  const requestId = reply.headers['request-id'] ?? ''
  return { status, headers: reply.headers, body: anthropicErrorBody(type, message, requestId, details) }
}

/** The vendor's 400 for a fault. */
export function refusal(dialect: Dialect, fault: Fault): Reply {
  if (dialect === 'messages') return anthropicError(400, 'invalid_request_error', fault.message)
  return openAiError(400, fault)
}

/** A 400 in the dialect's shape. */
export function badRequest(dialect: Dialect, message: string): Reply {
  return refusal(dialect, { message })
}
