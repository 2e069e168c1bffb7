import http from 'node:http'
import https from 'node:https'
import type { QueuedMessage } from './queued-message.ts'

/** Result of one attempt. Status 0 means that there was no answer. */
export interface DeliveryOutcome {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Record<string, string[]>
  /** Why there was no answer, where there was none. */
  readonly body: Buffer
}

/** The server that takes the deliveries for one origin in place of that origin's own host. */
export interface DeliveryRoute {
  /** `https://host`, without a path. */
  readonly origin: string
  /** Port on 127.0.0.1, plain HTTP. */
  readonly port: number
}

/** Largest answer that is kept, in bytes: the free plan's message size. The rest is cut off. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** Headers of a connection, which cannot be forwarded. */
const HOP_HEADERS = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
])

/**
 * Sends a message to its destination once. Not `fetch`: it follows redirects by default and gives up
 * on headers after five minutes, and QStash does neither.
 *
 * @param message what to send; its timeout covers the whole answer
 * @param signature value of `Upstash-Signature`
 * @param signal ends the attempt
 * @param route used for URLs of its origin; the URL that is signed stays the same
 * @returns the answer, or status 0 and the reason if there was none; never rejects
 */
export async function deliver(
  message: QueuedMessage,
  signature: string,
  signal: AbortSignal,
  route: DeliveryRoute | null = null,
): Promise<DeliveryOutcome> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(message.timeoutMs)])
  try {
    return await send(message, signature, limit, route)
  } catch (error) {
    const isTimeout = limit.aborted && !signal.aborted
    const reason = isTimeout ? `no answer within ${message.timeoutMs} ms` : (error as Error).message
    return { status: 0, headers: {}, body: Buffer.from(reason) }
  }
}

function send(
  message: QueuedMessage,
  signature: string,
  signal: AbortSignal,
  route: DeliveryRoute | null,
): Promise<DeliveryOutcome> {
  const body = deliveredBody(message)
  const address = addressOf(message.url, route)
  const client = address.protocol === 'https:' ? https : http
  return new Promise((resolve, reject) => {
    const request = client.request(
      // A connection of its own: a kept one may have died with a restarted receiver, and cost an attempt.
      {
        ...address,
        agent: false,
        method: message.method,
        headers: { ...deliveredHeaders(message, signature, body), ...address.headers },
        signal,
      },
      (response) => {
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          if (size < MAX_ANSWER_BYTES) chunks.push(chunk.subarray(0, MAX_ANSWER_BYTES - size))
          size += chunk.length
        })
        response.on('error', reject)
        response.on('end', () => {
          const headers = response.headersDistinct as Record<string, string[]>
          resolve({ status: response.statusCode ?? 0, headers, body: Buffer.concat(chunks) })
        })
      },
    )
    request.on('error', reject)
    request.end(body)
  })
}

/** Where to connect to, and the Host header if the address does not say it. */
function addressOf(text: string, route: DeliveryRoute | null): http.RequestOptions {
  const { protocol, hostname, port, host, pathname, search, origin } = new URL(text)
  const path = pathname + search
  if (route !== null && origin === route.origin)
    return { protocol: 'http:', hostname: '127.0.0.1', port: route.port, path, headers: { host } }
  return { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port, path }
}

/** The bytes that are sent and signed; a GET has none. */
export function deliveredBody(message: QueuedMessage): Buffer {
  return message.method === 'GET' ? Buffer.alloc(0) : Buffer.from(message.body, 'base64')
}

function deliveredHeaders(message: QueuedMessage, signature: string, body: Buffer): Record<string, string> {
  const forwarded = Object.entries(message.forwardHeaders).filter(([name]) => !HOP_HEADERS.has(name))
  return {
    ...Object.fromEntries(forwarded),
    ...(message.method !== 'GET' && { 'content-length': String(body.length) }),
    'user-agent': 'Upstash-QStash',
    'upstash-message-id': message.messageId,
    'upstash-retried': String(message.retried),
    'upstash-caller-ip': message.callerIp,
    'upstash-signature': signature,
    ...(message.scheduleId !== undefined && { 'upstash-schedule-id': message.scheduleId }),
  }
}
