import { holdBuffer } from '../../lib/buffer-holds.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
import { EgressError, safeFetch } from '../../lib/safe-fetch.ts'

/**
 * Providers are thin transports: address, authorization, and the headers of the caller that they understand. What
 * they say is a protocol's business.
 */

export type ProviderKind = 'openai-compatible' | 'anthropic'

/** An upstream service. `credential` is in clear: it never leaves this folder but as a header to `baseUrl`. */
export interface Provider {
  id: string
  name: string
  kind: ProviderKind
  baseUrl: string
  credential: string
}

/** What a call asks of an upstream. `responses` is our own: no upstream is asked for it, whatever it speaks. */
export type Operation = 'chat_completions' | 'completions' | 'messages' | 'count_tokens' | 'responses'

/** What an upstream is asked; `input_tokens` is the token counter of the responses protocol. */
export type UpstreamOperation = Operation | 'input_tokens'

interface Transport {
  /** Paths under the base URL; an operation that is absent is not spoken by this kind. */
  paths: Partial<Record<UpstreamOperation, string>>
  authorize(headers: Headers, credential: string): void
  /** Headers of the caller to send on, under the name the upstream knows, by every name they may come with. */
  forwarded: Record<string, readonly string[]>
  /** Headers sent when the caller sent none. */
  defaults: Record<string, string>
}

/** The interface names brand headers neutrally; clients send the brand's own. Both are taken. */
const TRANSPORTS: Record<ProviderKind, Transport> = {
  'openai-compatible': {
    paths: {
      chat_completions: '/chat/completions',
      completions: '/completions',
      input_tokens: '/responses/input_tokens',
    },
    authorize: (headers, credential) => headers.set('authorization', `Bearer ${credential}`),
    forwarded: { 'openai-beta': ['openai-beta'] },
    defaults: {},
  },
  anthropic: {
    paths: { messages: '/v1/messages', count_tokens: '/v1/messages/count_tokens' },
    authorize: (headers, credential) => headers.set('x-api-key', credential),
    forwarded: {
      'anthropic-version': ['anthropic-version', 'provider-version'],
      'anthropic-beta': ['anthropic-beta', 'provider-beta'],
      'x-claude-code-session-id': ['x-claude-code-session-id', 'x-codeclient-session-id'],
    },
    // https://docs.anthropic.com/en/api/versioning: the header is required.
    defaults: { 'anthropic-version': '2023-06-01' },
  },
}

export const speaks = (provider: Provider, operation: UpstreamOperation): boolean =>
  TRANSPORTS[provider.kind].paths[operation] !== undefined

export interface UpstreamRequest {
  operation: UpstreamOperation
  /** Pieces of the body, in order. */
  pieces: readonly Uint8Array[]
  length: number
  /** The caller's headers, of which the transport takes what it knows. */
  callerHeaders: Headers
  stream: boolean
  signal: AbortSignal
  /**
   * Called once a connection stands; it costs something, so not everybody asks. Where the platform makes the connections
   * (on Cloudflare) this says nothing of the host: one that cannot be reached is an answer there, 520 to 530.
   */
  onConnected?: (() => void) | null
  /** Loopback and private addresses that are allowed (configuration EGRESS_ALLOW). */
  allow: readonly string[]
}

/** Why there is no answer: the address is not allowed, or nobody answered. */
export class ProviderUnreachable extends Error {
  readonly reason: 'egress_denied' | 'unreachable' | 'redirected'
  constructor(reason: 'egress_denied' | 'unreachable' | 'redirected', cause?: unknown) {
    super(reason, { cause })
    this.name = 'ProviderUnreachable'
    this.reason = reason
  }
}

/**
 * Sends one call.
 * @returns the upstream's answer, whatever its status; only redirects are refused.
 * @throws ProviderUnreachable, or the abort reason of `signal`.
 */
export async function sendToProvider(provider: Provider, request: UpstreamRequest): Promise<Response> {
  const transport = TRANSPORTS[provider.kind]
  const path = transport.paths[request.operation]
  if (path === undefined) throw new Error(`${provider.kind} does not speak ${request.operation}`)
  let response: Response
  try {
    response = await safeFetch(provider.baseUrl + path, {
      method: 'POST',
      headers: upstreamHeaders(transport, provider.credential, request),
      body: bodyOf(request),
      signal: request.signal,
      allow: request.allow,
    })
  } catch (error) {
    request.signal.throwIfAborted()
    throw new ProviderUnreachable(error instanceof EgressError ? 'egress_denied' : 'unreachable', error)
  }
  if (response.status >= 300 && response.status < 400) {
    await response.body?.cancel()
    throw new ProviderUnreachable('redirected')
  }
  return response
}

function upstreamHeaders(transport: Transport, credential: string, request: UpstreamRequest): Headers {
  const headers = new Headers({
    'content-type': 'application/json',
    accept: request.stream ? 'text/event-stream' : 'application/json',
    'user-agent': 'headgate',
    ...transport.defaults,
  })
  for (const [name, sources] of Object.entries(transport.forwarded)) {
    const value = sources.map((source) => request.callerHeaders.get(source)).find((found) => found)
    if (value) headers.set(name, value)
  }
  transport.authorize(headers, credential)
  return headers
}

/** A small body is sent whole, a large one is streamed with a known length, without another copy of it. */
function bodyOf(request: UpstreamRequest): BodyInit {
  const { pieces, length, onConnected } = request
  const small = length <= JOINED_BYTES
  if (small && !onConnected) return joinBytes(pieces) as Uint8Array<ArrayBuffer>
  const { readable, writable } = new FixedLengthStream(length)
  const written = small ? [joinBytes(pieces)] : pieces
  // An upstream may answer before it has read all of it, and the answer may be on its way to the caller by then.
  const letGo = written.map(holdBuffer)
  writeSlices(writable, written, onConnected ?? (() => {}))
    // A failed write is the upstream hanging up: the fetch itself rejects and tells it.
    .catch(() => {})
    .finally(() => {
      for (const end of letGo) end()
    })
  return readable
}

/**
 * `fetch` does not say when it is connected, but it reads of the body only a few writes ahead of what the connection
 * takes (three, as measured). So the body's beginning is written in more slices than that.
 */
async function writeSlices(
  writable: WritableStream<Uint8Array>,
  pieces: readonly Uint8Array[],
  onConnected: () => void,
): Promise<void> {
  const writer = writable.getWriter()
  let left = BEGINNING_SLICES
  for (const piece of pieces) {
    let at = 0
    for (; left > 0 && at < piece.length; left--) {
      // What is left to slice may lie in later pieces, but a short piece makes short slices.
      const end = at + Math.max(1, Math.min(SLICE_BYTES, Math.floor((piece.length - at) / left)))
      await writer.write(piece.subarray(at, end))
      at = end
      if (left === 1) onConnected()
    }
    // The runtime copies each slice that it is given.
    for (; at < piece.length; at += LARGE_SLICE_BYTES) {
      await writer.write(piece.subarray(at, at + LARGE_SLICE_BYTES))
    }
  }
  onConnected()
  await writer.close()
}

/** Below this a copy is cheaper than a stream. */
const JOINED_BYTES = 1024 * 1024
const BEGINNING_SLICES = 5
const SLICE_BYTES = 8 * 1024
const LARGE_SLICE_BYTES = 256 * 1024
