import ipaddr from 'ipaddr.js'
import { BoundedMap } from './bounded-map.ts'
import { withoutTrailing } from './without-trailing.ts'

/**
 * The only outbound fetch. Addresses come from administrators, never from callers, and still each is checked: https, an
 * expected port, no literal private address, no redirect followed. Names that resolve to private addresses are blocked
 * by the platform (`global_fetch_strictly_public`), or by the network service of a self-hosted workerd.
 */

/** An address that may not be fetched. The message names the host and the rule, never a query or a credential. */
export class EgressError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EgressError'
  }
}

const INTERNAL_NAMES =
  /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|svc|home\.arpa)$/

/**
 * Public domains whose names resolve to loopback, or to an address that is written in the name. The list cannot be complete,
 * since anyone can create such a domain: the platform checks the addresses that names of a request resolve to.
 */
const RESOLVERS_TO_ANYTHING = new Set([
  'nip.io',
  'sslip.io',
  'xip.io',
  'traefik.me',
  'local.gd',
  'backname.io',
  '1u.ms',
  'rbndr.us',
  'localtest.me',
  'lvh.me',
  'vcap.me',
  'lacolhost.com',
  'localho.st',
  'fuf.me',
])

/** Azure's platform services have this address (learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16). */
const PLATFORM_ADDRESSES = new Set(['168.63.129.16'])

interface EgressOptions {
  /** Whether http on port 80 is allowed too. Requests with a credential always need https. */
  plainHttp?: boolean
}

/** A host name as rules and refusals have it: in lower case, without the dots of the root. */
export const plainHost = ({ hostname }: URL): string => withoutTrailing(hostname.toLowerCase(), '.')

/**
 * @param allow lowercase `host:port` exceptions, for loopback and private upstreams (configuration EGRESS_ALLOW).
 * @throws EgressError
 */
export function checkEgress(
  address: string,
  allow: readonly string[],
  { plainHttp = false }: EgressOptions = {},
): URL {
  const url = URL.canParse(address) ? new URL(address) : null
  if (!url) throw new EgressError('not a URL')
  const port = portOf(url)
  // `localhost.` is `localhost` to a resolver.
  const host = plainHost(url)
  if (url.username || url.password) throw new EgressError(`${host}: credentials in a URL are not allowed`)
  if (isException(url, allow)) return url
  const plain = plainHttp && url.protocol === 'http:'
  if (url.protocol !== 'https:' && !plain) {
    throw new EgressError(`${host}: only ${plainHttp ? 'http and https are' : 'https is'} allowed`)
  }
  if (port !== (plain ? '80' : '443')) throw new EgressError(`${host}: port ${port} is not allowed`)
  if (INTERNAL_NAMES.test(host)) throw new EgressError(`${host}: internal names are not allowed`)
  if (resolvesToAnything(host)) {
    throw new EgressError(`${host}: names that resolve to private addresses are not allowed`)
  }
  if (!isPublicHost(host)) throw new EgressError(`${host}: private addresses are not allowed`)
  return url
}

/** Whether the operator has listed this host and port (configuration EGRESS_ALLOW). */
export const isException = (url: URL, allow: readonly string[]): boolean =>
  (url.protocol === 'https:' || url.protocol === 'http:') &&
  allow.includes(`${plainHost(url)}:${portOf(url)}`)

const portOf = (url: URL): string => url.port || (url.protocol === 'http:' ? '80' : '443')

const resolvesToAnything = (host: string): boolean =>
  RESOLVERS_TO_ANYTHING.has(host.split('.').slice(-2).join('.'))

/** The routed part of IPv6; outside are forms such as `::127.0.0.1` (https://www.iana.org/assignments/ipv6-address-space). */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/** The URL parser has already turned decimal, octal and hexadecimal forms into dotted ones. */
function isPublicHost(host: string): boolean {
  const literal = host.replace(/^\[|\]$/g, '')
  if (!ipaddr.isValid(literal)) return !host.startsWith('[') && host.includes('.')
  const parsed = ipaddr.process(literal)
  if (parsed.range() !== 'unicast' || PLATFORM_ADDRESSES.has(parsed.toString())) return false
  return parsed.kind() === 'ipv4' || parsed.match(GLOBAL_UNICAST)
}

/**
 * Checked addresses in their normal form, by the list of exceptions. The result depends on the text alone, and providers
 * have few addresses. Refusals are not cached.
 */
const allowed = new WeakMap<readonly string[], BoundedMap<string, string>>()
const MOST_ADDRESSES = 1_000

function checkedAddress(address: string, allow: readonly string[]): string {
  const known = allowed.get(allow) ?? new BoundedMap<string, string>(MOST_ADDRESSES)
  allowed.set(allow, known)
  const checked = known.get(address)
  if (checked !== undefined) return checked
  const { href, search } = checkEgress(address, allow)
  // A query may hold a secret, and the number of queries is not bounded.
  if (search === '') known.set(address, href)
  return href
}

interface SafeFetchOptions extends RequestInit {
  allow: readonly string[]
  /** See `EgressOptions`. */
  plainHttp?: boolean
  /** Sends the request in place of the global network. */
  network?: Pick<Fetcher, 'fetch'> | null
}

/**
 * Fetches after `checkEgress`. Redirects are returned, not followed: the next address was not checked and the
 * headers carry credentials.
 */
export async function safeFetch(address: string, options: SafeFetchOptions): Promise<Response> {
  const { allow, plainHttp, network, ...init } = options
  // Pages have any number of addresses, and are not cached.
  const checked = plainHttp ? checkEgress(address, allow, { plainHttp }).href : checkedAddress(address, allow)
  const manual = { ...init, redirect: 'manual' as const }
  return network ? network.fetch(checked, manual) : fetch(checked, manual)
}
