/** JSON-RPC 2.0 as MCP uses it over HTTP: one message in a request, one in its answer. */

export type RequestId = string | number

/** The two families of protocol revisions: those that open with `initialize`, and from 2026-07-28 those without it. */
export type Era = 'legacy' | 'modern'

/** Codes of the interface (Errors, MCP gateway), of JSON-RPC and of MCP 2026-07-28. */
export const CODES = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  serverError: -32000,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const

/** An error of the protocol. */
export interface RpcError {
  code: number
  /** Sent to the caller as it is: never a credential, never a third party's text. */
  message: string
  data?: Readonly<Record<string, unknown>>
  /** HTTP status; 200 where it is left out, as the interface has it for errors of a method. */
  status?: number
  /** Code in the audit record. */
  auditCode: string
}

/** The answer to a request. The result of a long list is JSON text already, without its braces. */
export type RpcReply = { kind: 'result'; result: Record<string, unknown> | JsonMembers } | RpcFailure
export type RpcFailure = { kind: 'error'; error: RpcError }

/** Members of a JSON object as text. */
export class JsonMembers {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export const failure = (error: RpcError): RpcFailure => ({ kind: 'error', error })

export const invalidParams = (message: string, auditCode = 'invalid_params'): RpcFailure =>
  failure({ code: CODES.invalidParams, message, auditCode })

/** @returns the body of an answer. @param id null where the request has none that can be read. */
export function answerText(id: RequestId | null, reply: RpcReply): string {
  const end = `"id":${JSON.stringify(id)}}`
  if (reply.kind === 'error') {
    const { code, message, data } = reply.error
    return `{"jsonrpc":"2.0","error":${JSON.stringify({ code, message, data })},${end}`
  }
  const { result } = reply
  const text = result instanceof JsonMembers ? `{${result.text}}` : JSON.stringify(result)
  return `{"jsonrpc":"2.0","result":${text},${end}`
}

export const statusOf = (reply: RpcReply): number =>
  reply.kind === 'error' ? (reply.error.status ?? 200) : 200
