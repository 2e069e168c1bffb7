import type { AppContext } from './context.ts'

/** The origin under which browsers reach this gateway, without a slash at the end. */
export const ownOrigin = (context: AppContext): string =>
  context.var.deps.configuration.BASE_URL ?? new URL(context.req.url).origin
