import { EgressError, safeFetch } from '../../lib/safe-fetch.ts'
import { TokenRefused } from './access-tokens.ts'
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
  /** Called when the request itself is sent, after its authorization; null where that makes no difference. */
  onSending: (() => void) | null
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
 * Sends one request through the transport of a provider, and once more where a 401 only refuses an access token.
 * @returns the upstream's answer, whatever its status; only redirects are refused. A credential that is refused by the
 * provider's token service is a 401 as well (`isTokenRefusal`).
 * @throws ProviderUnreachable, or the abort reason of `signal`.
 */
export async function sendToProvider(transport: Transport, request: UpstreamRequest): Promise<Response> {
  const prepared = transport.prepare(request, request.body)
  try {
    const headers = await headersOf(transport, prepared, request)
    const response = await sendOnce(prepared, headers, request)
    if (response.status !== 401 || !transport.renew?.(headers, request.now)) return response
    await response.body?.cancel()
    return await sendOnce(prepared, await headersOf(transport, prepared, request), request)
  } catch (error) {
    const cause = error instanceof ProviderUnreachable ? error.cause : null
    if (cause instanceof TokenRefused) return refusedToken(cause)
    throw error
  }
}

const tokenRefusals = new WeakSet<Response>()

/** Whether an answer stands for the refusal of a token service: the provider itself was not sent the request. */
export const isTokenRefusal = (response: Response): boolean => tokenRefusals.has(response)

/** A refused exchange as the provider's other refusals of a credential: it moves on, and is shown to the operator. */
function refusedToken({ message }: TokenRefused): Response {
  const error = { message, type: 'authentication_error', code: 'token_refused' }
  const response = Response.json({ error }, { status: 401 })
  tokenRefusals.add(response)
  return response
}

async function sendOnce(
  { url, body }: PreparedRequest,
  headers: HeaderRecord,
  request: UpstreamRequest,
): Promise<Response> {
  request.onSending?.()
  const response = await guarded(request, 'unreachable', () =>
    safeFetch(url, {
      method: 'POST',
      headers,
      body: bodyInit(body, request.onConnected),
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

const headersOf = (
  { authorize }: Transport,
  prepared: PreparedRequest,
  request: UpstreamRequest,
): Promise<HeaderRecord> | HeaderRecord =>
  authorize ? authorizedHeaders(authorize, prepared, request) : prepared.headers

/** Time for the exchange of a credential for a token. */
const EXCHANGE_TIMEOUT_MS = 10_000

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
      send: (address, init) => {
        const signal = AbortSignal.any([request.signal, AbortSignal.timeout(EXCHANGE_TIMEOUT_MS)])
        return safeFetch(address, { ...init, signal, allow: request.allow })
      },
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
