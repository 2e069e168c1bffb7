import ipaddr from 'ipaddr.js'
import type { AppContext } from './context.ts'

/** Where a request comes from, or null. Cloudflare sets the header itself and drops what a caller sends under this name. */
export function callerAddress(context: AppContext): string | null {
  const address = context.req.header('cf-connecting-ip')
  // Without the platform's edge anybody can send it, and it becomes part of an index.
  return address !== undefined && ipaddr.isValid(address) ? address : null
}
