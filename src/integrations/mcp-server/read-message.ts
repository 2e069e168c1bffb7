import {
  classifyInboundRequest,
  isInitializeRequest,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/server'
import { MOST_JSON_VALUES } from '../../lib/json-values.ts'
import { CODES, type Era, failure, type RequestId, type RpcError, type RpcFailure } from './json-rpc.ts'

/** The revision without `initialize` that is served. */
export const MODERN_VERSION = '2026-07-28'

/** Revisions that `initialize` negotiates, newest first. */
export const LEGACY_VERSIONS: readonly string[] = SUPPORTED_PROTOCOL_VERSIONS

/** A message of a client that may be served. */
export interface RpcMessage {
  era: Era
  /** Null for a notification, or an answer to a request, which are accepted and dropped. */
  id: RequestId | null
  method: string
  params: Readonly<Record<string, unknown>>
}

export type ReadMessage =
  | { kind: 'message'; message: RpcMessage }
  /** `id`: of the request, where it can be read. */
  | { kind: 'refused'; id: RequestId | null; reply: RpcFailure }

/**
 * Reads the body of a request to the MCP endpoint: one JSON-RPC message, of the era that it states itself. The library of
 * the protocol decides the era and compares headers with the body.
 */
export function readMessage(body: Uint8Array, headers: Headers): ReadMessage {
  const value = parsed(body)
  if (value === undefined) return refused(null, 400, CODES.parseError, 'The body is not valid JSON.')
  if (Array.isArray(value)) {
    return refused(null, 400, CODES.invalidRequest, 'Batches are not supported: send one message.')
  }
  const id = idOf(value)
  const found = classifyInboundRequest({ httpMethod: 'POST', ...standardHeaders(headers), body: value })
  if (found.kind === 'reject') {
    const data = found.data as RpcError['data']
    return refused(id, found.httpStatus, found.code, found.message, data)
  }
  const { method = '', params = {} } = value as { method?: string; params?: RpcMessage['params'] }
  if (found.kind === 'legacy') {
    const version = headers.get('mcp-protocol-version')?.trim()
    const isKnown = version === undefined || LEGACY_VERSIONS.includes(version)
    if (!isKnown && !isInitializeRequest(value)) return unsupported(id, version, LEGACY_VERSIONS)
    return { kind: 'message', message: { era: 'legacy', id, method, params } }
  }
  const { revision } = found.classification
  if (revision !== MODERN_VERSION) return unsupported(id, revision ?? 'unknown', [MODERN_VERSION])
  const mismatch = found.messageKind === 'request' ? missingHeader(method, params, headers) : null
  if (mismatch !== null) return refused(id, 400, CODES.headerMismatch, mismatch)
  return { kind: 'message', message: { era: 'modern', id, method, params } }
}

/** The answer to a message with more values than a tree may have. The message is not parsed, so its id is unknown. */
export const tooManyValues = (): ReadMessage =>
  refused(null, 400, CODES.invalidRequest, `A message may hold at most ${MOST_JSON_VALUES} values.`)

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body))
  } catch {
    return undefined
  }
}

function idOf(value: unknown): RequestId | null {
  const { method, id } = (value ?? {}) as Record<string, unknown>
  const isRequest = typeof method === 'string' && (typeof id === 'string' || typeof id === 'number')
  return isRequest ? id : null
}

const HEADERS = {
  protocolVersionHeader: 'mcp-protocol-version',
  mcpMethodHeader: 'mcp-method',
  mcpNameHeader: 'mcp-name',
} as const

const standardHeaders = (headers: Headers): { [Name in keyof typeof HEADERS]?: string } =>
  Object.fromEntries(
    Object.entries(HEADERS).flatMap(([member, name]) => {
      const value = headers.get(name)
      return value === null ? [] : [[member, value]]
    }),
  )

/** MCP 2026-07-28, Transports: a request repeats its revision, its method and the name of its tool in headers. */
function missingHeader(method: string, params: RpcMessage['params'], headers: Headers): string | null {
  if (!headers.has('mcp-protocol-version')) return 'The header MCP-Protocol-Version is missing.'
  if (!headers.has('mcp-method')) return 'The header Mcp-Method is missing.'
  const name = params.name
  if (method !== 'tools/call' || typeof name !== 'string') return null
  const header = headers.get('mcp-name')
  if (header === null) return 'The header Mcp-Name is missing.'
  return decodedName(header.trim()) === name ? null : 'The header Mcp-Name is not the name of the tool.'
}

const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/

/** The value of a header, which is in base64 if it has characters that headers cannot have. Null if that is invalid. */
function decodedName(header: string): string | null {
  if (!header.startsWith('=?base64?')) return header
  const encoded = ENCODED.exec(header)?.[1]
  if (encoded === undefined || encoded.length % 4 !== 0) return null
  return Buffer.from(encoded, 'base64').toString('utf8')
}

/** @param supported of the era of the message. */
function unsupported(id: RequestId | null, requested: string, supported: readonly string[]): ReadMessage {
  const named = requested.slice(0, 40)
  const message = `The protocol version ${named} is not supported.`
  return refused(id, 400, CODES.unsupportedVersion, message, { supported, requested: named })
}

function refused(
  id: RequestId | null,
  status: number,
  code: number,
  message: string,
  data?: RpcError['data'],
): ReadMessage {
  const error = { code, message, status, auditCode: 'invalid_message', ...(data && { data }) }
  return { kind: 'refused', id, reply: failure(error) }
}
