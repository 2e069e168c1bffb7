import { parseAddress, truncateAddress } from '../lib/truncate-address.ts'
import type { AppContext, CallerAddress } from './context.ts'

/** The address of the caller, or null. It is for limits only: what is stored is `storedAddress`. Cloudflare sets the header itself, and drops one that a caller sends. */
export const callerAddress = (context: AppContext): string | null => addressOf(context)?.text ?? null

/** The address of the caller as records have it: its network, unless the deployment stores addresses whole. */
export function storedAddress(context: AppContext): string | null {
  const address = addressOf(context)
  if (address === null) return null
  return context.get('deps').configuration.STORE_FULL_ADDRESSES
    ? address.text
    : truncateAddress(address.parsed)
}

/** Parsed once a request. */
function addressOf(context: AppContext): CallerAddress | null {
  const known = context.get('address')
  if (known !== undefined) return known
  const text = context.req.header('cf-connecting-ip')
  const parsed = text === undefined ? null : parseAddress(text)
  // Without Cloudflare in front a caller can send any text, and the value becomes part of an index.
  const address = text === undefined || parsed === null ? null : { text, parsed }
  context.set('address', address)
  return address
}
