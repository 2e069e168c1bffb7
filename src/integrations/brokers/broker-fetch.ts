import { EgressError, safeFetch } from '../../lib/safe-fetch.ts'

/** Why a server of an account could not be used. The message is safe for callers: it quotes nothing of the server's. */
export class BrokerError extends Error {
  /** `unavailable` may pass by itself; `unusable` needs another configuration; `unconfigured` is a broker without a key here. */
  readonly reason: 'unavailable' | 'unusable' | 'unconfigured'

  constructor(reason: BrokerError['reason'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'BrokerError'
    this.reason = reason
  }
}

const TIME_LIMIT_MS = 10_000
/** Documents of discovery, registration and tokens are a few kilobytes. */
const MOST_BYTES = 256 * 1024

/**
 * Makes a fetch for authorization servers and brokers. Each address is checked, since metadata of an upstream can name any;
 * redirects are refused, since requests carry credentials; and the answer is read here, within a time and a size.
 * @param allow `host:port` exceptions (configuration EGRESS_ALLOW). @param timeLimit in milliseconds, until the answer is read.
 * The fetch throws BrokerError.
 */
export function brokerFetch(allow: readonly string[], timeLimit = TIME_LIMIT_MS) {
  return async (address: string | URL, init: RequestInit = {}): Promise<Response> => {
    const url = String(address)
    const stop = AbortSignal.timeout(timeLimit)
    try {
      const signal = init.signal ? AbortSignal.any([stop, init.signal]) : stop
      const response = await safeFetch(url, { ...init, signal, allow })
      const body = await readLimited(response)
      refuseRedirect(response, url)
      const isBodiless = response.status === 204 || response.status === 205 || response.status === 304
      return new Response(isBodiless ? null : body, { status: response.status, headers: response.headers })
    } catch (error) {
      if (error instanceof BrokerError) throw error
      if (error instanceof EgressError) {
        throw new BrokerError('unusable', `An address may not be called (${error.message}).`)
      }
      const message = `${hostOf(url)} ${stop.aborted ? 'did not answer in time' : 'cannot be reached'}.`
      throw new BrokerError('unavailable', message, { cause: error })
    }
  }
}

function refuseRedirect({ status }: Response, url: string): void {
  if (status < 300 || status >= 400 || status === 304) return
  throw new BrokerError('unusable', `${hostOf(url)} redirects, which is not followed.`)
}

async function readLimited(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.length
    if (size > MOST_BYTES) throw new BrokerError('unavailable', 'The answer of a server is too long.')
    parts.push(part)
  }
  return new Uint8Array(Buffer.concat(parts))
}

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : 'The server')
