import { EgressError, safeFetch } from '../../lib/safe-fetch.ts'
import type { HeaderRecord, PreparedRequest, RequestTarget, Transport } from './transport.ts'
import { bodyHash, bodyInit, type RequestBody } from './upstream-body.ts'

export interface UpstreamRequest extends RequestTarget {
  body: RequestBody
  signal: AbortSignal
  /**
   * Called once a connection stands; null where it is not needed, because watching costs time. On Cloudflare the platform
   * makes the connections, so that this is no sign of the host: an unreachable one is an answer there, 520 to 530.
   */
  onConnected: (() => void) | null
  /** Loopback and private addresses that are allowed (configuration EGRESS_ALLOW). */
  allow: readonly string[]
  /** Milliseconds since the epoch, for signatures. */
  now: number
}

type UnreachableReason = 'egress_denied' | 'unreachable' | 'redirected' | 'authorization_failed'

export class ProviderUnreachable extends Error {
  readonly reason: UnreachableReason
  constructor(reason: UnreachableReason, cause?: unknown) {
    super(reason, { cause })
    this.name = 'ProviderUnreachable'
    this.reason = reason
  }
}

/**
 * Sends one request through the transport of a provider.
 * @returns the upstream's answer, whatever its status; only redirects are refused.
 * @throws ProviderUnreachable, or the abort reason of `signal`.
 */
export async function sendToProvider(transport: Transport, request: UpstreamRequest): Promise<Response> {
  const prepared = transport.prepare(request, request.body)
  const headers = transport.authorize
    ? await authorizedHeaders(transport.authorize, prepared, request)
    : prepared.headers
  const response = await guarded(request, 'unreachable', () =>
    safeFetch(prepared.url, {
      method: 'POST',
      headers,
      body: bodyInit(prepared.body, request.onConnected),
      signal: request.signal,
      allow: request.allow,
    }),
  )
  if (response.status >= 300 && response.status < 400) {
    await response.body?.cancel()
    throw new ProviderUnreachable('redirected')
  }
  return response
}

async function authorizedHeaders(
  authorize: NonNullable<Transport['authorize']>,
  { url, headers, body }: PreparedRequest,
  request: UpstreamRequest,
): Promise<HeaderRecord> {
  let hash: Promise<string> | null = null
  const added = await guarded(request, 'authorization_failed', () =>
    authorize({
      method: 'POST',
      url,
      headers,
      bodyHash: () => (hash ??= bodyHash(body)),
      now: request.now,
      send: (address, init) => safeFetch(address, { ...init, signal: request.signal, allow: request.allow }),
    }),
  )
  return { ...headers, ...added }
}

/** A failure inside becomes ProviderUnreachable; after an abort, the reason of the signal is thrown. */
async function guarded<Result>(
  { signal }: UpstreamRequest,
  reason: UnreachableReason,
  act: () => Promise<Result>,
): Promise<Result> {
  try {
    return await act()
  } catch (error) {
    signal.throwIfAborted()
    throw new ProviderUnreachable(error instanceof EgressError ? 'egress_denied' : reason, error)
  }
}
