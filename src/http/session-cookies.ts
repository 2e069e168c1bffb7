import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { CEREMONY_MS } from '../admin/sign-in/ceremony.ts'
import { codedRefusal } from '../lib/api-error.ts'
import type { AppContext } from './context.ts'
import { pageOrigin } from './own-origin.ts'

// Cookies of the web terminal. `__Host-`: neither a subdomain nor a page without TLS can set them. Routes under /v1 read none.

const SESSION = 'hg_session'
const CEREMONY = 'hg_ceremony'
const ROUND = 'hg_round'
const OPTIONS = { prefix: 'host', path: '/', secure: true, httpOnly: true, sameSite: 'Strict' } as const

/** The token of the session's cookie. */
export const sessionCookie = (context: AppContext): string | undefined => getCookie(context, SESSION, 'host')

/** @param expiresAt milliseconds since the epoch. */
export const setSessionCookie = (context: AppContext, token: string, expiresAt: number): void =>
  setCookie(context, SESSION, token, { ...OPTIONS, expires: new Date(expiresAt) })

export const clearSessionCookie = (context: AppContext): void => clear(context, SESSION)

/** The sealed ceremony that this browser began. */
export const ceremonyCookie = (context: AppContext): string | undefined =>
  getCookie(context, CEREMONY, 'host')

export const setCeremonyCookie = (context: AppContext, sealed: string): void =>
  setCookie(context, CEREMONY, sealed, { ...OPTIONS, maxAge: CEREMONY_MS / 1_000 })

export const clearCeremonyCookie = (context: AppContext): void => clear(context, CEREMONY)

const clear = (context: AppContext, name: string): void => void deleteCookie(context, name, OPTIONS)

/**
 * The sealed sign-in that this browser began with an identity provider. Lax: the return is a navigation from the provider's page, with
 * which browsers send no strict cookie. That is all it can do: it ends with the `state` that it holds.
 */
export const roundCookie = (context: AppContext): string | undefined => getCookie(context, ROUND, 'host')

export const setRoundCookie = (context: AppContext, sealed: string): void =>
  setCookie(context, ROUND, sealed, { ...OPTIONS, sameSite: 'Lax', maxAge: CEREMONY_MS / 1_000 })

export const clearRoundCookie = (context: AppContext): void => clear(context, ROUND)

const SAFE = new Set(['GET', 'HEAD'])

/**
 * Refuses a change that another site's page has sent with this site's cookies. Browsers say where a request comes from; one that
 * says neither is no browser of ours.
 * @throws ApiError `forbidden`.
 */
export function requireOwnPage(context: AppContext): void {
  if (SAFE.has(context.req.method)) return
  const site = context.req.header('sec-fetch-site')
  const isOwn =
    site === undefined ? context.req.header('origin') === pageOrigin(context) : site === 'same-origin'
  if (isOwn) return
  throw codedRefusal(
    'forbidden',
    'cross_origin_request',
    'This request must come from a page of this gateway.',
  )
}
