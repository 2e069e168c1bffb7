import ipaddr from 'ipaddr.js'

export type AddressRange = [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number]

/**
 * Reads addresses and ranges, separated by commas: `10.0.0.0/8, ::1`.
 * @throws Error for one that is neither
 */
export function readRanges(text: string): AddressRange[] {
  const parts = text.split(',').map((part) => part.trim())
  return parts
    .filter((part) => part !== '')
    .map((part) => {
      if (ipaddr.isValidCIDR(part)) return ipaddr.parseCIDR(part)
      if (!ipaddr.isValid(part)) throw new Error('must be addresses or ranges such as 10.0.0.0/8')
      const address = ipaddr.process(part)
      return [address, address.kind() === 'ipv4' ? 32 : 128]
    })
}

/**
 * The address that a request came from. A header can be forged by anyone, so it counts only as far as the proxies that wrote it are
 * trusted: from the last entry backwards, the first one that is not itself a trusted proxy.
 *
 * @param peer address of the connection
 * @param forwardedFor value of `X-Forwarded-For`
 * @param trusted the proxies
 * @returns null for an address that cannot be read
 */
export function clientAddress(
  peer: string | undefined,
  forwardedFor: string | undefined,
  trusted: readonly AddressRange[],
): string | null {
  let client = parse(peer)
  const hops = (forwardedFor ?? '').split(',').reverse()
  for (const hop of hops) {
    if (client === null || !isTrusted(client, trusted)) break
    const before = parse(hop.trim())
    if (before === null) break
    client = before
  }
  return client?.toString() ?? null
}

const parse = (text: string | undefined) =>
  text !== undefined && ipaddr.isValid(text) ? ipaddr.process(text) : null

const isTrusted = (address: ipaddr.IPv4 | ipaddr.IPv6, trusted: readonly AddressRange[]): boolean =>
  trusted.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits))
