import ipaddr from 'ipaddr.js'
import type { AppContext } from './context.ts'

/** The address of the caller, or null. Cloudflare sets the header itself, and drops one that a caller sends. */
export function callerAddress(context: AppContext): string | null {
  const address = context.req.header('cf-connecting-ip')
  // Without Cloudflare in front a caller can send any text, and the value becomes part of an index.
  return address !== undefined && ipaddr.isValid(address) ? address : null
}
