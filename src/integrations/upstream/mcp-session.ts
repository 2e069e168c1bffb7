import {
  Client,
  type JSONRPCMessage,
  type JSONRPCRequest,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { ApiError } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { CredentialsUnavailable, type McpServerProtocol, type UpstreamCredential } from '../types.ts'
import { deliverAnswer } from './deliver-answer.ts'
import { UpstreamError, upstreamFetch } from './upstream-fetch.ts'

interface McpUpstream {
  url: string
  /** `host:port` exceptions (configuration EGRESS_ALLOW). */
  allow: readonly string[]
  credential: UpstreamCredential
  /** Protocol that the last refresh found; null to find it. */
  protocol: McpServerProtocol | null
  /** Bytes of all answers together. */
  mostBytes: number
  /** Milliseconds for each request. */
  timeLimit: number
  signal: AbortSignal
  /** Changes each message of the server before the client library checks it. */
  prepare?: (message: JSONRPCMessage) => JSONRPCMessage
}

export interface McpSession {
  client: Client
  /** Protocol of the upstream. */
  protocol: McpServerProtocol
  /** The error to throw for what the client threw: safe for callers. */
  failureOf(error: unknown): Error
  /** Ends the requests, and the session at an upstream that has some. Never rejects. */
  close(): Promise<void>
}

/** The gateway's client information for upstreams. It contains nothing of the caller. */
const CLIENT = { name: 'headgate', version: '1.0.0' }

/** The one modern revision that the client library speaks. */
const MODERN = '2026-07-28'

/** Time limit for the end of a session; nothing depends on it. */
const CLOSING_MS = 2_000

/**
 * Opens a session of the Model Context Protocol over streamable HTTP. With a known protocol, a modern upstream and a
 * legacy one without sessions cost no round trip. A legacy one with sessions gets a session for each call: its session may
 * hold state, which must not pass from one caller to another.
 * @throws UpstreamError, CredentialsUnavailable, and the reason of the signal.
 */
export async function openMcpSession(upstream: McpUpstream): Promise<McpSession> {
  const { url, allow, credential, mostBytes, protocol, signal, timeLimit, prepare } = upstream
  const send = upstreamFetch({ allow, credential, mostBytes })
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: async (address, init) => {
      if (init?.method === 'GET') return noStream()
      const response = await send(address, init)
      const id = requestIdOf(init?.body)
      if (id === undefined || !response.ok) return response
      await deliverAnswer(response, id, (message) => transport.onmessage?.(message))
      return new Response(null, { status: 202, headers: response.headers })
    },
    // The fetch above follows none.
    redirectPolicy: 'follow',
    ...(protocol?.era === 'legacy' && !protocol.hasSessions && withoutSession(protocol.version)),
  })
  const client = new Client(CLIENT, {
    versionNegotiation: { mode: 'auto' },
    inputRequired: { autoFulfill: false },
  })
  const options = { signal, timeout: timeLimit }
  const failureOf = (error: unknown) => callerError(error, signal)
  try {
    await client.connect(transport, { ...options, ...(protocol && { prior: priorOf(protocol) }) })
  } catch (error) {
    await client.close().catch(() => {})
    throw failureOf(error)
  }
  const deliver = transport.onmessage
  if (prepare) transport.onmessage = (message) => deliver?.(prepare(message))
  return {
    client,
    protocol: protocol ?? protocolOf(client, transport),
    failureOf,
    close: () => closeSession(client, transport),
  }
}

/** Clients open a stream for messages of the server, which nothing here reads: the server is not even asked. */
const noStream = () => new Response(null, { status: 405 })

/** Id of a message that the client sends; undefined for one that needs no answer. */
function requestIdOf(body: unknown): unknown {
  const message = typeof body === 'string' ? (JSON.parse(body) as Partial<JSONRPCRequest>) : {}
  return message.method === undefined ? undefined : message.id
}

/** A transport with a session does not initialize; an empty one is not sent. */
const withoutSession = (version: string) => ({ sessionId: '', protocolVersion: version })

const priorOf = (protocol: McpServerProtocol) =>
  protocol.era === 'legacy'
    ? { kind: 'legacy' as const }
    : {
        kind: 'modern' as const,
        discover: {
          resultType: 'complete' as const,
          supportedVersions: [protocol.version],
          capabilities: { tools: {} },
          ttlMs: 0,
          cacheScope: 'private' as const,
        },
      }

function protocolOf(client: Client, transport: StreamableHTTPClientTransport): McpServerProtocol {
  const version = client.getNegotiatedProtocolVersion() ?? MODERN
  return client.getProtocolEra() === 'modern'
    ? { era: 'modern', version }
    : { era: 'legacy', version, hasSessions: transport.sessionId !== undefined }
}

async function closeSession(client: Client, transport: StreamableHTTPClientTransport): Promise<void> {
  try {
    if (transport.sessionId) {
      await Promise.race([transport.terminateSession(), new Promise((done) => setTimeout(done, CLOSING_MS))])
    }
  } catch (error) {
    logEvent('info', 'integration.session_not_ended', { error: errorText(error) })
  } finally {
    await client.close().catch(() => {})
  }
}

/** An error that quotes nothing of the upstream. */
function callerError(error: unknown, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason instanceof Error ? signal.reason : new Error('aborted')
  const known = knownCause(error)
  if (known) return known
  if (error instanceof SdkHttpError) {
    return new UpstreamError(`The upstream of the integration answered with status ${error.status}.`, {
      cause: error,
    })
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
    return new UpstreamError('The upstream of the integration did not answer in time.', { cause: error })
  }
  return new UpstreamError('The upstream of the integration sent an answer that is not valid MCP.', {
    cause: error,
  })
}

/** Libraries wrap what the fetch threw. */
function knownCause(error: unknown): Error | null {
  for (let current = error; current instanceof Error; current = current.cause) {
    if (current instanceof ApiError || current instanceof CredentialsUnavailable) return current
  }
  return null
}
