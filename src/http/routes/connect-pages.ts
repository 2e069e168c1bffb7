import { Hono } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { html } from 'hono/html'
import {
  beginAuthorization,
  type EndedSession,
  finishAuthorization,
  openSession,
} from '../../admin/connections/connect/authorize.ts'
import type { ConnectSession } from '../../admin/connections/connect/connect-sessions.store.ts'
import { ApiError } from '../../lib/api-error.ts'
import { countShared } from '../../lib/shared-limits.ts'
import { callerAddress, storedAddress } from '../caller-address.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { changeBy } from '../own-change.ts'
import { ownOrigin } from '../own-origin.ts'

/** Requests a minute of one address, where people make a handful, and of all whose address is unknown. */
const PAGES = { name: 'connect-pages', perMinute: 60 }
const PAGES_FROM_ANYWHERE = { name: 'connect-pages', perMinute: 1_200 }

/**
 * The pages on which a person connects an account. They work without a script, and without signing in: the link names the
 * session, and a cookie binds it to the browser that begins.
 */
export const connectPageRoutes = new Hono<AppEnv>()
  .get('/connect/callback', async (context) => {
    await limitPages(context)
    const { state, code, error, iss } = context.req.query()
    const connected = await finishAuthorization(
      context.var.deps,
      { state, code, error, iss },
      (name) => getCookie(context, name),
      (session) => changeOfPerson(context, session),
    )
    if (connected.kind === 'ended') return page(context, ENDED[connected.reason], 400)
    if (connected.kind === 'failed') return page(context, failurePage(connected.failure), 400)
    const { integrationName } = connected.session
    const text = `The account of ${integrationName} is connected. This window can be closed.`
    return page(context, { title: 'Connected', text }, 200)
  })
  .get('/connect/:secret', async (context) => {
    await limitPages(context)
    const opened = await openSession(context.var.deps, context.req.param('secret'))
    if (opened.kind === 'ended') return page(context, ENDED[opened.reason], 404)
    const { integrationName, connectionName, organizationName, userEmail } = opened.session
    const server = new URL(opened.state.authorizationUrl)
    const text =
      `${userEmail} connects an account of ${integrationName} as "${connectionName}" for ${organizationName}. ` +
      `Continue only if this is you, and you have requested this link. The next page is that of ${server.host}.`
    return page(context, { title: `Connect ${integrationName}`, text, continues: server.origin }, 200)
  })
  .post('/connect/:secret', async (context) => {
    await limitPages(context)
    refuseOtherSites(context)
    const begun = await beginAuthorization(context.var.deps, context.req.param('secret'), (name) =>
      getCookie(context, name),
    )
    if (begun.kind === 'ended') return page(context, ENDED[begun.reason], 400)
    const { name, value, seconds } = begun.cookie
    setCookie(context, name, value, {
      path: '/connect',
      httpOnly: true,
      // The return from the authorization server is a navigation from another site.
      sameSite: 'Lax',
      secure: ownOrigin(context).startsWith('https:'),
      maxAge: seconds,
    })
    setPageHeaders(context)
    return context.redirect(begun.url, 303)
  })

const ENDED: Record<EndedSession, PageContent> = {
  unknown: { title: 'Unknown link', text: 'This link does not belong to a connection. Request a new one.' },
  expired: {
    title: 'Link expired',
    text: 'This link has expired, or was replaced by a newer one. Request a new one.',
  },
  completed: { title: 'Already connected', text: 'The account was connected with this link already.' },
  failed: {
    title: 'Not connected',
    text: 'Connecting the account with this link has failed. Request a new one.',
  },
  other_browser: {
    title: 'Another browser',
    text: 'This link was opened in another browser. Continue there, or request a new one.',
  },
}

const FAILURES: Record<string, string> = {
  access_denied: 'The access was denied.',
  wrong_issuer: 'The answer came from another authorization server than the one that was called.',
  code_refused: 'The authorization server refused its own code.',
  server_unavailable: 'The authorization server did not answer.',
  not_stored: 'The account could not be stored.',
}

const failurePage = (failure: string): PageContent => ({
  title: 'Not connected',
  text: `${FAILURES[failure] ?? 'The authorization server refused the request.'} Request a new link to try again.`,
})

interface PageContent {
  title: string
  text: string
  /** The origin to which the button of the page leads; no button without one. */
  continues?: string
}

/** Texts of people and upstreams are escaped by the template. */
function page(context: AppContext, { title, text, continues }: PageContent, status: 200 | 400 | 404) {
  setPageHeaders(context, continues)
  const form = continues ? html`<form method="post"><button type="submit">Continue</button></form>` : ''
  return context.html(
    html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title></head>
<body><main><h1>${title}</h1><p>${text}</p>${form}</main></body>
</html>`,
    status,
  )
}

/** @param continues the origin to which a form may lead, since browsers apply `form-action` to redirects as well. */
function setPageHeaders(context: AppContext, continues?: string): void {
  const actions = continues ? `'self' ${continues}` : "'none'"
  context.header(
    'content-security-policy',
    `default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action ${actions}`,
  )
  context.header('cache-control', 'no-store')
  // The link is a secret of its person; with `no-referrer` the form would send no origin.
  context.header('referrer-policy', 'same-origin')
  context.header('x-content-type-options', 'nosniff')
  context.header('x-frame-options', 'DENY')
}

/** Refuses a start from another site: the person would miss the page that names the place of the account. */
function refuseOtherSites(context: AppContext): void {
  const origin = context.req.header('origin')
  const isOwn = origin === ownOrigin(context) || origin === new URL(context.req.url).origin
  if (!isOwn) throw new ApiError('forbidden', 'The form of this page must send the request.')
}

async function limitPages(context: AppContext): Promise<void> {
  const address = callerAddress(context)
  const limit = address === null ? PAGES_FROM_ANYWHERE : PAGES
  const { allowed, retryAfterSeconds } = await countShared(context.var.deps, limit, address ?? 'unknown')
  if (!allowed)
    throw new ApiError('rate_limited', 'Too many requests. Try again soon.', { retryAfterSeconds })
}

const changeOfPerson = (context: AppContext, { organizationId, userId }: ConnectSession) =>
  changeBy(context, organizationId, {
    userId,
    keyId: null,
    administrator: null,
    ip: storedAddress(context),
  })
