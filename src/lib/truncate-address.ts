import ipaddr from 'ipaddr.js'

/** Bits that name the network of a caller: a household or a small office, and no single device in it. */
const NETWORK_BITS = { ipv4: 24, ipv6: 48 }

/**
 * The network of an address: an IPv4 address without its last number, an IPv6 address without what follows its first 48 bits. Another
 * text, such as `unknown`, stays as it is.
 */
export function truncateAddress(text: string): string {
  if (!ipaddr.isValid(text)) return text
  // One that is mapped into IPv6 (::ffff:192.0.2.1) is of IPv4.
  const address = ipaddr.process(text)
  const bytes = address.toByteArray()
  const kept = NETWORK_BITS[address.kind()] / 8
  return ipaddr.fromByteArray(bytes.map((byte, index) => (index < kept ? byte : 0))).toString()
}
