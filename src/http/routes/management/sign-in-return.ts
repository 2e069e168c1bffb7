import { finishOidc, returnedRound } from '../../../admin/sign-in/oidc-sign-in.ts'
import { ApiError } from '../../../lib/api-error.ts'
import { logFailure } from '../../../lib/log.ts'
import type { AppContext } from '../../context.ts'
import { countRejected } from '../../middleware/administer.ts'
import { clearRoundCookie, roundCookie } from '../../session-cookies.ts'
import { changeScope } from './change-scope.ts'
import { signedIn, visitOf } from './sign-in.ts'

/** What the sign-in page explains. Nothing else of a failure gets into its address. */
const FAILURES = new Set([
  'sign_in_expired',
  'setup_link_unusable',
  'sso_declined',
  'sso_no_member',
  'sso_refused',
  'sso_unavailable',
  'sso_unreachable',
  'sso_unverified',
])

/**
 * The return from an identity provider: signs in, and leads to the page that the browser's own round names. The session's cookie is
 * strict, and is set by the answer to a navigation that began at another site: browsers store it, and do not send it with the
 * redirect. The page at its end needs none, since it is a static file; its own requests come from the gateway's origin, and have the
 * cookie. A test in Chromium shows it (test/browser/console-company-account).
 */
export async function returnFromProvider(context: AppContext): Promise<Response> {
  context.header('cache-control', 'no-store')
  // The address holds the code.
  context.header('referrer-policy', 'no-referrer')
  return context.redirect(await pageAfter(context), 303)
}

/** The page of the console to which a return leads. */
async function pageAfter(context: AppContext): Promise<string> {
  const scope = changeScope(context)
  const returned = new URL(context.req.url).searchParams
  try {
    const round = returnedRound(scope, roundCookie(context), returned)
    // Whatever becomes of it, its code is spent. A return with another state leaves the round as it is: anyone can send one.
    clearRoundCookie(context)
    signedIn(context, await finishOidc(visitOf(context, scope), round, returned))
    return round.to
  } catch (error) {
    const code = error instanceof ApiError ? String(error.details?.code ?? '') : ''
    if (error instanceof ApiError && error.kind === 'unauthorized') countRejected(context)
    if (FAILURES.has(code)) return `/console/sign-in?failed=${code}`
    const place = { request_id: context.get('requestId'), surface: 'management', route: 'sign-in.callback' }
    logFailure('sign_in_failed', place, error)
    return '/console/sign-in?failed=internal'
  }
}
