import { AdminError } from './errors.ts'

/**
 * The address of a gateway without a slash at its end.
 * @param name of what has it, for messages. @throws AdminError if the token would travel unencrypted.
 */
export function checkedAddress(name: string, address: string): string {
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null) throw new AdminError(`${name} is not a URL`)
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal)) {
    throw new AdminError(`${name} must be https: the administration token would travel in the clear`)
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}
