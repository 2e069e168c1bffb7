import { isLocalAddress } from '../env.ts'
import type { AppContext } from './context.ts'

/** The origin under which browsers reach this gateway, without a slash at the end. */
export const ownOrigin = (context: AppContext): string =>
  context.var.deps.configuration.BASE_URL ?? new URL(context.req.url).origin

/**
 * The origin of the page that sends a request. A local system is reached by every name of loopback: browsers take passkeys at
 * `localhost` only.
 */
export function pageOrigin(context: AppContext): string {
  return isLocal(context) ? new URL(context.req.url).origin : ownOrigin(context)
}

/** Whether a request comes to a local system by a name of loopback, so that no page of another name has sent it. */
export function isLocal(context: AppContext): boolean {
  const { LOCAL_SIGN_IN: local, BASE_URL: base } = context.var.deps.configuration
  if (local === undefined || base === undefined) return false
  const { origin, port } = new URL(context.req.url)
  return isLocalAddress(origin) && port === new URL(base).port
}
