import ipaddr from 'ipaddr.js'
import { BoundedMap } from './bounded-map.ts'

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

const INTERNAL_NAMES = /(^|\.)(localhost|local|internal|intranet|home\.arpa)$/

/**
 * @param allow lowercase `host:port` exceptions, for loopback and private upstreams (configuration EGRESS_ALLOW).
 * @throws EgressError
 */
export function checkEgress(address: string, allow: readonly string[]): URL {
  const url = URL.canParse(address) ? new URL(address) : null
  if (!url) throw new EgressError('not a URL')
  const port = url.port || (url.protocol === 'http:' ? '80' : '443')
  // `localhost.` is `localhost` to a resolver.
  const host = url.hostname.toLowerCase().replace(/\.+$/, '')
  if (url.username || url.password) throw new EgressError(`${host}: credentials in a URL are not allowed`)
  if ((url.protocol === 'https:' || url.protocol === 'http:') && allow.includes(`${host}:${port}`)) return url
  if (url.protocol !== 'https:') throw new EgressError(`${host}: only https is allowed`)
  if (port !== '443') throw new EgressError(`${host}: port ${port} is not allowed`)
  if (INTERNAL_NAMES.test(host)) throw new EgressError(`${host}: internal names are not allowed`)
  if (!isPublicHost(host)) throw new EgressError(`${host}: private addresses are not allowed`)
  return url
}

/** The routed part of IPv6; outside are forms such as `::127.0.0.1` (https://www.iana.org/assignments/ipv6-address-space). */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/** The URL parser has already turned decimal, octal and hexadecimal forms into dotted ones. */
function isPublicHost(host: string): boolean {
  const literal = host.replace(/^\[|\]$/g, '')
  if (!ipaddr.isValid(literal)) return !host.startsWith('[') && host.includes('.')
  const parsed = ipaddr.process(literal)
  if (parsed.range() !== 'unicast') return false
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

/**
 * Fetches after `checkEgress`. Redirects are returned, not followed: the next address was not checked and the
 * headers carry credentials.
 */
export async function safeFetch(
  address: string,
  options: RequestInit & { allow: readonly string[] },
): Promise<Response> {
  const { allow, ...init } = options
  return fetch(checkedAddress(address, allow), { ...init, redirect: 'manual' })
}
