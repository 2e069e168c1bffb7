import ipaddr from 'ipaddr.js'
import { truncateAddress } from '../lib/truncate-address.ts'
import type { AppContext } from './context.ts'

/** The address of the caller, or null. It is for limits only: what is stored is `storedAddress`. Cloudflare sets the header itself, and drops one that a caller sends. */
export function callerAddress(context: AppContext): string | null {
  const address = context.req.header('cf-connecting-ip')
  // Without Cloudflare in front a caller can send any text, and the value becomes part of an index.
  return address !== undefined && ipaddr.isValid(address) ? address : null
}

/** The address of the caller as records have it: its network, unless the deployment stores addresses whole. */
export function storedAddress(context: AppContext): string | null {
  const address = callerAddress(context)
  if (address === null || context.get('deps').configuration.STORE_FULL_ADDRESSES) return address
  return truncateAddress(address)
}
