import { withoutTrailing } from '../../lib/without-trailing.ts'
import type { ShellNetwork } from './run-commands.ts'

/** Fetches one address after the checks of every outgoing request; redirects are returned. @throws EgressError */
type CheckedFetch = (address: string, init: RequestInit) => Promise<Response>

const TIME_LIMIT_MS = 15_000
const MOST_BYTES = 4 * 1024 * 1024
const MOST_REDIRECTS = 5
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * The network of a shell, to hosts that a caller's rules allow. Each redirect is checked like the first address, and loses
 * the caller's headers and body when it leads to another origin.
 * @param isAllowed whether a host may be reached, in lower case. @param fetchChecked also refuses private addresses.
 */
export function guardedNetwork(
  isAllowed: (host: string) => boolean,
  fetchChecked: CheckedFetch,
): ShellNetwork {
  return async (address, { method = 'GET', headers, body, followRedirects = true, signal } = {}) => {
    if (!METHODS.includes(method)) throw new Error(`the method ${method} is not allowed`)
    const limit = AbortSignal.timeout(TIME_LIMIT_MS)
    let init: RequestInit = {
      ...{ method, signal: signal ? AbortSignal.any([signal, limit]) : limit },
      ...(headers && { headers: new Headers(headers) }),
      ...(body !== undefined && method !== 'GET' && method !== 'HEAD' && { body }),
    }
    let url = allowedUrl(address, isAllowed)
    for (let redirects = 0; ; redirects++) {
      const response = await fetchChecked(url.href, init)
      const target = followRedirects && isRedirect(response) ? response.headers.get('location') : null
      if (target === null) return resultOf(response, url)
      await response.body?.cancel()
      if (redirects === MOST_REDIRECTS) throw new Error('too many redirects')
      const next = allowedUrl(new URL(target, url).href, isAllowed)
      init = redirected(init, response.status, next.origin === url.origin)
      url = next
    }
  }
}

function allowedUrl(address: string, isAllowed: (host: string) => boolean): URL {
  const url = URL.canParse(address) ? new URL(address) : null
  if (!url) throw new Error('not a URL')
  const host = withoutTrailing(url.hostname.toLowerCase(), '.')
  if (!isAllowed(host)) throw new Error(`the network policy does not allow ${host}`)
  return url
}

const isRedirect = ({ status }: Response): boolean => [301, 302, 303, 307, 308].includes(status)

/** Redirects as browsers do: a 303, and a 301 or 302 after POST, becomes a GET. */
function redirected(init: RequestInit, status: number, sameOrigin: boolean): RequestInit {
  const becomesGet = status === 303 || (status < 303 && init.method === 'POST')
  const { headers, body, ...rest } = init
  if (!sameOrigin) return { ...rest, method: init.method === 'HEAD' ? 'HEAD' : 'GET' }
  if (becomesGet) return { ...rest, method: 'GET', ...(headers && { headers }) }
  return init
}

async function resultOf(response: Response, url: URL) {
  return {
    status: response.status,
    statusText: response.statusText,
    headers: Object.fromEntries(response.headers),
    body: await bytesOf(response),
    url: url.href,
  }
}

/** The body after decompression, which is what a bomb would fill memory with. @throws when it is too large */
async function bytesOf({ body }: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > MOST_BYTES) throw new Error(`the response has more than ${MOST_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
