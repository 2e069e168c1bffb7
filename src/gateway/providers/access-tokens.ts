import { BoundedMap } from '../../lib/bounded-map.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import type { HeaderRecord, RequestToAuthorize, Transport } from './transport.ts'

/** Access tokens that credentials are exchanged for, in the memory of this isolate. */

export interface AccessToken {
  value: string
  /** Milliseconds since the epoch. */
  expiresAt: number
}

/** What an exchange needs of the request that it is made for. */
export type ExchangeRequest = Pick<RequestToAuthorize, 'now' | 'send'>

/** Exchanges a credential for a token. @throws TokenRefused when the token service refuses the credential. */
export type TokenExchange = (request: ExchangeRequest) => Promise<AccessToken>

/** The token service refuses the credential. The message has neither the credential nor a text of the service. */
export class TokenRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'TokenRefused'
  }
}

/** A token is renewed this long before its end, as the official libraries of Google and Azure do. */
const RENEWAL_MS = 5 * 60_000
/** Time after a failed exchange in which no further one is tried. */
const BETWEEN_FAILURES_MS = 5_000
/** A token that is refused at this age was never accepted: a new one would be refused as well. */
const SETTLED_MS = 60_000
/**
 * Time that a call waits for the exchange of another call, and then, once, for the one that took over. After that it
 * exchanges by itself: the exchange ends with the request that makes it, without a sign.
 */
const PATIENCE_MS = [1_000, 2_000]
/** Age at which an exchange counts as ended with its request, for calls that need not wait for it. */
const LONGEST_EXCHANGE_MS = 10_000
const MOST_CREDENTIALS = 1_000
/** Calls that the end of an exchange wakes; further ones continue when their own time is over. */
const MOST_WAITING = 1_000

/** Indexed by a digest of the credential. Transports are made anew with each reading of the catalogue. */
const sharedTokens = new BoundedMap<string, SharedToken>(MOST_CREDENTIALS)

/**
 * The authorization of a transport by bearer tokens: one exchange at a time for each credential, shared by all calls of
 * the isolate, before the token ends, and once more after the provider has refused it.
 * @param credential identifies the credential and its scope: calls with the same text share a token.
 */
export function accessTokens(
  credential: readonly string[],
  exchange: TokenExchange,
): Required<Pick<Transport, 'authorize' | 'renew'>> {
  const key = sha256Hex(JSON.stringify(credential))
  const shared = () => {
    const token = sharedTokens.get(key) ?? new SharedToken()
    sharedTokens.set(key, token)
    return token
  }
  return {
    authorize: async (request) => bearer(await shared().value(request, exchange)),
    renew: ({ authorization = '' }, now) => shared().isRenewed(authorization.slice(BEARER.length), now),
  }
}

const BEARER = 'Bearer '
const bearer = (value: string): HeaderRecord => ({ authorization: BEARER + value })

type Held = AccessToken & { issuedAt: number }
type Failure = { error: unknown; at: number }

/** The token of one credential. Requests share it, so it holds plain data and promises of `Promise.withResolvers`. */
class SharedToken {
  #token: Held | null = null
  #failure: Failure | null = null
  /** The exchange that others wait for, with its beginning; null when none runs. */
  #running: { since: number } | null = null
  readonly #waiting = new Set<() => void>()

  /** @returns a valid token. @throws the error of the exchange when there is none. */
  async value(request: ExchangeRequest, exchange: TokenExchange): Promise<string> {
    const { now } = request
    const token = this.#token
    if (token === null || token.expiresAt <= now) return this.#awaited(request, exchange)
    const isBusy = this.#running !== null && now - this.#running.since < LONGEST_EXCHANGE_MS
    // A short-lived token is renewed in its second half.
    const renewal = Math.min(RENEWAL_MS, (token.expiresAt - token.issuedAt) / 2)
    if (token.expiresAt - now > renewal || isBusy || this.#failedLately(now)) return token.value
    // The old token is still valid: a failed renewal, or one that takes long, does not fail the call.
    await Promise.race([this.#exchange(request, exchange).catch(() => {}), after(PATIENCE_MS[0])])
    return (this.#token ?? token).value
  }

  /**
   * Forgets a token that the provider refused. @param value the token that was sent.
   * @returns whether another one can be had.
   */
  isRenewed(value: string, now: number): boolean {
    const token = this.#token
    if (token === null || token.value !== value) return true
    if (now - token.issuedAt < SETTLED_MS) return false
    this.#token = null
    return true
  }

  async #awaited(request: ExchangeRequest, exchange: TokenExchange): Promise<string> {
    const { now } = request
    if (this.#failure?.error instanceof TokenRefused && this.#failedLately(now)) throw this.#failure.error
    for (const patience of PATIENCE_MS) {
      const running = this.#running
      if (running === null) break
      await this.#untilEnded(patience)
      if (this.#token && this.#token.expiresAt > now) return this.#token.value
      const failure = this.#failure as Failure | null
      if (failure?.error instanceof TokenRefused && failure.at >= running.since) throw failure.error
      // The call that waited longest takes over from one that did not return; the others wait for it.
      if (this.#running === running) this.#running = null
    }
    return (await this.#exchange(request, exchange)).value
  }

  async #exchange(request: ExchangeRequest, exchange: TokenExchange): Promise<Held> {
    const running = { since: request.now }
    this.#running = running
    try {
      const token = { ...(await exchange(request)), issuedAt: request.now }
      this.#token = token
      this.#failure = null
      return token
    } catch (error) {
      this.#failure = { error, at: request.now }
      throw error
    } finally {
      if (this.#running === running) this.#running = null
      for (const wake of this.#waiting) wake()
      // A request that has ended does not run on, and would leave its entry behind.
      this.#waiting.clear()
    }
  }

  #failedLately(now: number): boolean {
    return this.#failure !== null && now - this.#failure.at < BETWEEN_FAILURES_MS
  }

  /** Waits for the end of an exchange, or for some milliseconds. See `WaitingEntry` about the promise. */
  async #untilEnded(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const [oldest] = this.#waiting.size < MOST_WAITING ? [] : this.#waiting
    if (oldest) this.#waiting.delete(oldest)
    this.#waiting.add(resolve)
    const timer = setTimeout(resolve, milliseconds)
    await promise
    clearTimeout(timer)
    this.#waiting.delete(resolve)
  }
}

function after(milliseconds = 0): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  setTimeout(resolve, milliseconds)
  return promise
}

/** The longest answer of a token service, in characters. */
const LONGEST_ANSWER = 100_000
/** Lifetime of a token whose answer has none, in seconds (RFC 6749 section 5.1 only recommends it). */
const DEFAULT_SECONDS = 300

/**
 * The token in the answer of an OAuth 2.0 token service (RFC 6749 sections 5.1 and 5.2).
 * @throws TokenRefused for an error of the credential; Error for any other answer.
 */
export async function tokenOf(response: Response, now: number): Promise<AccessToken> {
  const text = (await response.text()).slice(0, LONGEST_ANSWER)
  const answer = membersOf(text)
  if (response.status >= 400 && response.status < 500 && !BUSY.has(response.status)) {
    const { error } = answer
    const code = typeof error === 'string' && /^[a-z_]{1,60}$/.test(error) ? `, ${error}` : ''
    throw new TokenRefused(`the token service refused the credential (status ${response.status}${code})`)
  }
  const { access_token: value, expires_in: seconds } = answer
  // The value becomes a header.
  if (!response.ok || typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) {
    throw new Error(`the token service sent no token (status ${response.status})`)
  }
  const lifetime = Number(seconds) > 0 ? Number(seconds) : DEFAULT_SECONDS
  return { value, expiresAt: now + lifetime * 1_000 }
}

/** Statuses that are no evidence about the credential. */
const BUSY = new Set([408, 425, 429])

function membersOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
