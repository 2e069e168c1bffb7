import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js'

/** Bits that name the network of a caller: a household or a small office, and no single device in it. */
const NETWORK_BITS = { ipv4: 24, ipv6: 48 }

/** An address from its text; null for any other text. One of IPv4 that is mapped into IPv6 (::ffff:192.0.2.1) is of IPv4. */
export function parseAddress(text: string): IPv4 | IPv6 | null {
  try {
    // `ipaddr.process` would try the text once more, to find its kind.
    if (!text.includes(':')) return ipaddr.IPv4.parse(text)
    const address = ipaddr.IPv6.parse(text)
    return address.isIPv4MappedAddress() ? address.toIPv4Address() : address
  } catch {
    return null
  }
}

/** The network of an address: of IPv4 without its last number, of IPv6 without what follows its first 48 bits. */
export function truncateAddress(address: IPv4 | IPv6): string {
  const bytes = address.toByteArray()
  const kept = NETWORK_BITS[address.kind()] / 8
  return ipaddr.fromByteArray(bytes.map((byte, index) => (index < kept ? byte : 0))).toString()
}
