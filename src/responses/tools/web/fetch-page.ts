import { type EgressRules, isHostAllowed } from '../../../identity/tool-rights.ts'
import { joinBytes } from '../../../lib/byte-edits.ts'
import { PartReader } from '../../../lib/bytes/read-bytes.ts'
import { checkEgress, EgressError, isException, plainHost, safeFetch } from '../../../lib/safe-fetch.ts'

// The guarded fetch for addresses that a model or a page has chosen. It sends no credential and no cookie, and checks the
// address of every redirect.

/** A page that could not be read. The message is for the model: it names the host and the reason, and no query. */
export class PageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'PageError'
  }
}

export interface WebPageRequest {
  /** `host:port` exceptions to private addresses (configuration WEB_EGRESS_ALLOW). */
  allow: readonly string[]
  /** The rules of the caller's organization, for the host of every redirect too. */
  rules: EgressRules
  /** A network that connects to public addresses only, whatever a name resolves to. Null where the global one does. */
  publicNetwork: Pick<Fetcher, 'fetch'> | null
  signal: AbortSignal
  /** Takes bytes of the page out of a budget; false if they do not fit. Everything fits without it. */
  take?: (bytes: number) => boolean
  limits?: Partial<PageLimits>
}

interface PageLimits {
  /** Bytes after decompression. A longer page is cut. */
  bytes: number
  /** Time for all redirects and the body together. */
  milliseconds: number
  redirects: number
}

export const PAGE_LIMITS: PageLimits = { bytes: 5 * 1024 * 1024, milliseconds: 30_000, redirects: 5 }

export interface FetchedPage {
  /** Address after redirects. */
  url: string
  /** Lower case, without parameters; empty if the server sends none. */
  type: string
  /** Charset of the `content-type` header, or null. */
  charset: string | null
  bytes: Uint8Array
  /** Whether the page is longer than its limit. */
  cut: boolean
}

const HEADERS = {
  accept:
    'text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/*;q=0.8, application/json;q=0.7, */*;q=0.1',
  'user-agent': 'Mozilla/5.0 (compatible; Headgate)',
}
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** Encodings that the runtime decodes. Others would arrive as they are. */
const ENCODINGS = new Set(['', 'identity', 'gzip', 'x-gzip', 'br'])

/**
 * Fetches a page over http or https, following redirects.
 * @throws PageError for a refused address, a failure, an answer other than 2xx, and a type that is no text;
 * the reason of `signal` once it was aborted.
 */
export async function fetchPage(address: string, request: WebPageRequest): Promise<FetchedPage> {
  const limits = { ...PAGE_LIMITS, ...request.limits }
  const time = new AbortController()
  const timer = setTimeout(() => time.abort(), limits.milliseconds)
  const signal = AbortSignal.any([request.signal, time.signal])
  try {
    const { url, response } = await answerOf(address, { ...request, signal }, limits.redirects)
    const { type, charset } = await checkedType(url, response)
    const body = await readUpTo(response.body, limits.bytes, { ...request, signal })
    return { url: url.href, type, charset, ...body }
  } catch (error) {
    request.signal.throwIfAborted()
    if (time.signal.aborted)
      throw new PageError(`${hostOf(address)}: took longer than ${limits.milliseconds / 1_000} s`)
    if (error instanceof PageError) throw error
    if (error instanceof EgressError) throw new PageError(error.message)
    throw new PageError(`${hostOf(address)}: could not be reached`)
  } finally {
    clearTimeout(timer)
  }
}

/** The first answer that is no redirect. Bodies of redirects are dropped. */
async function answerOf(address: string, request: WebPageRequest, redirects: number) {
  let next = address
  for (let left = redirects; ; left--) {
    const url = checkedPage(next, request)
    const response = await send(url, request)
    if (!REDIRECTS.has(response.status)) return { url, response }
    await response.body?.cancel()
    if (left === 0) throw new PageError(`${plainHost(url)}: more than ${redirects} redirects`)
    const location = response.headers.get('location')
    if (location === null || !URL.canParse(location, url.href)) {
      throw new PageError(`${plainHost(url)}: a redirect without an address`)
    }
    next = new URL(location, url).href
  }
}

/** Checks the address of a page by all rules. @throws EgressError */
function checkedPage(address: string, { allow, rules }: Pick<WebPageRequest, 'allow' | 'rules'>): URL {
  const url = checkEgress(address, allow, { plainHttp: true })
  const host = plainHost(url)
  if (!isHostAllowed(rules, host))
    throw new EgressError(`${host}: not allowed by the rules of the organization`)
  return url
}

/** Whether a page may be opened at an address, by the current rules. */
export function mayOpenPage(address: string, rules: Pick<WebPageRequest, 'allow' | 'rules'>): boolean {
  try {
    return checkedPage(address, rules) !== null
  } catch (error) {
    if (error instanceof EgressError) return false
    throw error
  }
}

/** The network for public addresses would refuse what the operator has listed. */
const send = (url: URL, { allow, publicNetwork, signal }: WebPageRequest): Promise<Response> =>
  safeFetch(url.href, {
    allow,
    signal,
    headers: HEADERS,
    plainHttp: true,
    network: isException(url, allow) ? null : publicNetwork,
  })

async function checkedType(url: URL, response: Response) {
  const refuse = async (reason: string): Promise<never> => {
    await response.body?.cancel()
    throw new PageError(`${plainHost(url)}: ${reason}`)
  }
  if (!response.ok) return refuse(`answered with status ${response.status}`)
  const encoding = (response.headers.get('content-encoding') ?? '').trim().toLowerCase()
  if (!ENCODINGS.has(encoding)) return refuse('sent an encoding that cannot be read')
  const [type = '', ...parameters] = (response.headers.get('content-type') ?? '').toLowerCase().split(';')
  const essence = type.trim()
  if (essence === 'application/pdf') return refuse('is a PDF document, which cannot be read here')
  if (!isText(essence)) return refuse(`is ${kindOf(essence)}, which cannot be read here`)
  const charset = parameters
    .map((text) => /^\s*charset\s*=\s*"?([\w.:-]{1,40})/.exec(text)?.[1])
    .find(Boolean)
  return { type: essence, charset: charset ?? null }
}

/** The text contains no words of the server: it reaches the model without a mark around it. */
const kindOf = (type: string): string =>
  /^(image|audio|video|font)\//.exec(type)?.[1]?.replace(/^/, 'of the type ') ?? 'of a type that is no text'

const isText = (type: string): boolean =>
  type === '' ||
  /^text\/[\w.+-]+$/.test(type) ||
  /^application\/(json|xml|[\w.-]+\+(json|xml)|x-ndjson)$/.test(type)

/** @returns the beginning of a body that is longer. Bytes count after decompression, which the runtime does as they are read. */
export async function readUpTo(
  body: ReadableStream<Uint8Array> | null,
  most: number,
  { signal, take }: Pick<WebPageRequest, 'signal' | 'take'>,
) {
  const pieces: Uint8Array[] = []
  if (!body) return { bytes: new Uint8Array(), cut: false }
  const reader = new PartReader(body)
  const cancel = () => reader.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    for (let left = most; ; ) {
      const part = await reader.next()
      signal.throwIfAborted()
      if (part && take?.(part.length) === false) throw tooManyPages()
      if (part) pieces.push(part.slice(0, left))
      if (!part || part.length > left) return { bytes: joinBytes(pieces), cut: part !== null }
      left -= part.length
    }
  } finally {
    signal.removeEventListener('abort', cancel)
    reader.cancel()
  }
}

/** The pages that are being read in this isolate fill their budget. */
export const tooManyPages = () =>
  new PageError('Too many large pages are being read here at the moment. Try again.')

const hostOf = (address: string): string =>
  URL.canParse(address) ? plainHost(new URL(address)) : 'the address'
