import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ConsoleBrowser, SESSION_COOKIE, setupLink, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { IdentityProvider } from '../harness/identity-provider.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { addMember, administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'

const CALLBACK = '/api/sign-in/oidc/callback'

const provider = new IdentityProvider({ sub: 'nobody' })
let worker: StartedWorker
let tenant: Tenant
let other: Tenant
let slug: string

const ask = <Body>(method: string, path: string, body?: unknown) =>
  administrator(worker).ask<Body>(method, path, body)
const settings = () => ({
  issuer: provider.issuer,
  client_id: provider.client.id,
  client_secret: provider.client.secret,
})

beforeAll(async () => {
  await provider.start()
  const allowed = [gateway().variables.EGRESS_ALLOW, new URL(provider.issuer).host].filter(Boolean).join(',')
  worker = await startWorker({ EGRESS_ALLOW: allowed })
  ;[tenant, other] = await Promise.all([createTenant(worker), createTenant(worker)])
  slug = (await ask<{ slug: string }>('GET', tenant.base)).slug
  await ask('PUT', `${tenant.base}/identity-provider`, settings())
}, 60_000)
afterAll(async () => {
  await worker?.stop()
  await provider.stop()
})
beforeEach(() => {
  provider.faults = {}
  provider.hasAddressInToken = true
  provider.provedAt = null
})

interface Start {
  organization?: string
  token?: string
  reauthenticate?: boolean
  to?: string
}

/** Begins a sign-in. @returns where the provider sends the browser back to. */
async function begun(browser: ConsoleBrowser, start: Start = { organization: slug }): Promise<string> {
  const { url } = await browser.ask<{ url: string }>('POST', '/sign-in/oidc/begin', start)
  return provider.visit(url)
}

/** Opens the address that the provider sends the browser back to, as a navigation from another site. */
const comeBack = (browser: ConsoleBrowser, address: string): Promise<Answer> =>
  browser.call('GET', address.slice(address.indexOf('/api') + 4), undefined, {
    ...browser.headers(),
    'sec-fetch-site': 'cross-site',
  })

/** Signs in whole. @returns the page that it leads to. */
async function signedIn(browser: ConsoleBrowser, start?: Start): Promise<string> {
  const answer = await comeBack(browser, await begun(browser, start))
  expect(answer.status).toBe(303)
  return String(answer.headers.location)
}

const account = () => ({
  sub: uniqueName('sub'),
  email: `${uniqueName('person')}@example.com`,
  email_verified: true,
})

/** A member with the address of the account that the provider has now. */
async function memberOfAccount(more: object = {}, base = tenant.base): Promise<string> {
  provider.account = account()
  return addMember(worker, base, { email: provider.account.email, ...more })
}

describe('a sign-in with the account of a company', () => {
  it('links the member with the verified address once, and goes by the account from then on', async () => {
    const userId = await memberOfAccount()
    const browser = new ConsoleBrowser(worker)
    expect(await signedIn(browser, { organization: slug, to: `/console/${slug}/calls?q=x` })).toBe(
      `/console/${slug}/calls?q=x`,
    )
    expect(await browser.ask('GET', '/me')).toMatchObject({ user: { id: userId }, organization: { slug } })
    const [request] = provider.requests.slice(-1)
    expect(request?.get('code_challenge_method')).toBe('S256')
    expect(request?.get('redirect_uri')).toBe(`${worker.baseUrl}${CALLBACK}`)

    // Another address of the same account is the same member; the address alone is nobody any more.
    const { sub, email } = provider.account
    provider.account = { sub, email: 'else@example.com', email_verified: true }
    const again = new ConsoleBrowser(worker)
    await signedIn(again)
    expect(await again.ask('GET', '/me')).toMatchObject({ user: { id: userId } })
    provider.account = { sub: uniqueName('sub'), email: String(email), email_verified: true }
    expect(await signedIn(new ConsoleBrowser(worker))).toBe('/console/sign-in?failed=sso_no_member')
  })

  it('takes the address from where the access token leads', async () => {
    const userId = await memberOfAccount()
    provider.hasAddressInToken = false
    const browser = new ConsoleBrowser(worker)
    await signedIn(browser)
    expect(await browser.ask('GET', '/me')).toMatchObject({ user: { id: userId } })
  })

  it('is linked by a setup link, whatever the address, and the link is used', async () => {
    const userId = await addMember(worker, tenant.base)
    const token = await setupLink(worker, tenant.base, userId)
    provider.account = { sub: uniqueName('sub') }
    const visitor = new ConsoleBrowser(worker)
    expect(await visitor.ask('POST', '/setup', { token })).toMatchObject({
      identity_provider: { issuer: provider.issuer },
    })
    expect(await signedIn(visitor, { token })).toBe('/console')
    expect(await visitor.ask('GET', '/me')).toMatchObject({ user: { id: userId } })
    expect(jsonOf(await visitor.call('POST', '/setup', { token })).details).toMatchObject({
      code: 'setup_link_unusable',
    })
    // A new link unlinks the account.
    await setupLink(worker, tenant.base, userId)
    expect(await signedIn(new ConsoleBrowser(worker))).toBe('/console/sign-in?failed=sso_unverified')
  })

  it('is recorded with its method, and no secret of it is', async () => {
    const userId = await memberOfAccount()
    await signedIn(new ConsoleBrowser(worker))
    await ask('POST', `${tenant.base}/ledger/flush`)
    const { data } = await ask<{ data: Array<{ action: string; record: object }> }>(
      'GET',
      `${tenant.base}/audit?user_id=${userId}`,
    )
    const started = data.find(({ action }) => action === 'session.started')
    expect(started?.record).toMatchObject({
      detail: { method: 'oidc', issuer: provider.issuer, linked_by: 'address' },
    })
    const logs = readdirSync(worker.logFolder).map((name) =>
      readFileSync(join(worker.logFolder, name), 'utf8'),
    )
    const rows = await query(gateway(), 'SELECT body FROM audit_records WHERE organization_id = $1', [
      tenant.organizationId,
    ])
    for (const text of [...logs, JSON.stringify(rows)]) expect(text).not.toContain(provider.client.secret)
  })

  it('is recent only when the person has just proved who it is', async () => {
    await memberOfAccount({ role: 'owner' })
    provider.provedAt = Math.floor(Date.now() / 1_000) - 3_600
    const browser = new ConsoleBrowser(worker)
    await signedIn(browser)
    const change = (body: object) => browser.call('PUT', `${tenant.base}/identity-provider`, body)
    expect(jsonOf(await change(settings())).details).toMatchObject({ code: 'sign_in_again' })
    await signedIn(browser, { organization: slug, reauthenticate: true })
    expect(provider.requests.at(-1)?.get('prompt')).toBe('login')
    expect((await change(settings())).status).toBe(200)
    // A provider that does not ask again, although it was told to.
    provider.faults = { claims: { auth_time: provider.provedAt } }
    expect(await signedIn(new ConsoleBrowser(worker), { organization: slug, reauthenticate: true })).toBe(
      '/console/sign-in?failed=sso_refused',
    )
  })

  it('goes on when the provider changes its key', async () => {
    await memberOfAccount()
    await signedIn(new ConsoleBrowser(worker))
    provider.rotateKey()
    expect(await signedIn(new ConsoleBrowser(worker))).toBe('/console')
  })
})

describe('an account is refused', () => {
  it.each([
    ['without a verified address', { email_verified: false }, 'sso_unverified'],
    ['with a text for verified', { email_verified: 'true' }, 'sso_unverified'],
    ['of no member', {}, 'sso_no_member'],
  ])('%s', async (_, more, code) => {
    provider.account = { ...account(), ...more }
    if (code === 'sso_unverified') await addMember(worker, tenant.base, { email: provider.account.email })
    const browser = new ConsoleBrowser(worker)
    expect(await signedIn(browser)).toBe(`/console/sign-in?failed=${code}`)
    expect(browser.cookies.has(SESSION_COOKIE)).toBe(false)
  })

  it('of a member of another organization, of a service account and of a disabled member', async () => {
    await memberOfAccount({}, other.base)
    expect(await signedIn(new ConsoleBrowser(worker))).toContain('sso_no_member')
    await memberOfAccount({ kind: 'service' })
    expect(await signedIn(new ConsoleBrowser(worker))).toContain('sso_no_member')
    const userId = await memberOfAccount()
    await signedIn(new ConsoleBrowser(worker))
    await ask('DELETE', `${tenant.base}/users/${userId}`)
    expect(await signedIn(new ConsoleBrowser(worker))).toContain('sso_no_member')
  })

  it('of an operator, whose rights no provider of an organization may give', async () => {
    const userId = await memberOfAccount()
    await signedIn(new ConsoleBrowser(worker))
    await ask('PUT', `${tenant.base}/users/${userId}/entitlements/operator`)
    expect(await signedIn(new ConsoleBrowser(worker))).toContain('sso_no_member')
  })

  it.each([
    ['another issuer', { claims: { iss: 'https://evil.example' } }],
    ['another audience', { claims: { aud: 'other' } }],
    ['another nonce', { claims: { nonce: 'x' } }],
    ['no nonce', { claims: { nonce: undefined } }],
    ['an end that is over', { claims: { exp: Math.floor(Date.now() / 1_000) - 600 } }],
    ['no subject', { claims: { sub: undefined } }],
    ['no signature', { signature: 'none' }],
    ['the public key as a secret', { signature: 'public_key_as_secret' }],
    ['a key that is not published', { signature: 'other_key' }],
    ['another issuer in the return', { iss: 'https://evil.example' }],
    ['a code that is refused', { token: 'error' }],
  ] as const)('with %s in its token', async (_, faults) => {
    await memberOfAccount()
    provider.faults = faults
    const browser = new ConsoleBrowser(worker)
    expect(await signedIn(browser)).toBe('/console/sign-in?failed=sso_refused')
    expect(browser.cookies.has(SESSION_COOKIE)).toBe(false)
  })

  it('where the person declines, without a word of the provider', async () => {
    await memberOfAccount()
    provider.faults = { denies: true }
    expect(await signedIn(new ConsoleBrowser(worker))).toBe('/console/sign-in?failed=sso_declined')
  })

  it.each(['server_fault', 'endless'] as const)(
    'while the provider has a %s, and works after it',
    async (token) => {
      await memberOfAccount()
      provider.faults = { token }
      expect(await signedIn(new ConsoleBrowser(worker))).toBe('/console/sign-in?failed=sso_unreachable')
      provider.faults = {}
      expect(await signedIn(new ConsoleBrowser(worker))).toBe('/console')
    },
  )
})

describe('a return', () => {
  it('is taken once, from the browser that began, and with its own state', async () => {
    await memberOfAccount()
    const browser = new ConsoleBrowser(worker)
    const address = await begun(browser)
    const expired = '/console/sign-in?failed=sign_in_expired'
    const otherState = address.replace(/state=[^&]+/, 'state=x')
    expect((await comeBack(browser, otherState)).headers.location).toBe(expired)
    expect((await comeBack(new ConsoleBrowser(worker), address)).headers.location).toBe(expired)
    const thief = new ConsoleBrowser(worker)
    await begun(thief)
    expect((await comeBack(thief, address)).headers.location).toBe(expired)
    const first = await comeBack(browser, address)
    expect(first.headers.location).toBe('/console')
    expect((await comeBack(browser, address)).headers.location).toBe(expired)
  })

  it('of one organization opens no session in another', async () => {
    const userId = await memberOfAccount()
    await addMember(worker, other.base, { email: provider.account.email })
    await ask('PUT', `${other.base}/identity-provider`, settings())
    const browser = new ConsoleBrowser(worker)
    await signedIn(browser)
    expect(await browser.ask('GET', '/me')).toMatchObject({
      user: { id: userId },
      organization: { id: tenant.organizationId },
    })
    expect((await browser.call('GET', other.base)).status).toBe(404)
    await ask('DELETE', `${other.base}/identity-provider`)
  })

  it('leads to a page of the console only', async () => {
    const browser = new ConsoleBrowser(worker)
    for (const to of [
      'https://evil.example/',
      '//evil.example',
      '/v1/models',
      '/consoles',
      '/console\\evil',
      '/console/\n',
    ]) {
      const answer = await browser.call('POST', '/sign-in/oidc/begin', { organization: slug, to })
      expect(answer.status, to).toBe(400)
    }
  })

  it('ends nobody’s session and tells nothing apart, for an organization that does not exist or has no provider', async () => {
    const browser = new ConsoleBrowser(worker)
    const { slug: without } = await ask<{ slug: string }>('GET', other.base)
    const answers = await Promise.all(
      [without, 'no-such-organization'].map((organization) =>
        browser.call('POST', '/sign-in/oidc/begin', { organization }),
      ),
    )
    const [first, second] = answers.map((answer) => ({ status: answer.status, ...jsonOf(answer) }))
    expect(first).toMatchObject({ status: 422, details: { code: 'sso_unavailable' } })
    expect({ ...second, request_id: null }).toEqual({ ...first, request_id: null })
  })
})

describe('the identity provider of an organization', () => {
  it('is set by an owner of the organization, and shows no secret', async () => {
    for (const [role, status] of [
      ['member', 403],
      ['admin', 403],
      ['owner', 200],
    ] as const) {
      const userId = await addMember(worker, tenant.base, { role })
      const browser = await signedInBrowser(worker, tenant.base, userId)
      const answer = await browser.call('PUT', `${tenant.base}/identity-provider`, settings())
      expect(answer.status, role).toBe(status)
      expect(JSON.stringify(jsonOf(answer))).not.toContain(provider.client.secret)
    }
    expect(await ask('GET', `${tenant.base}/identity-provider`)).toMatchObject({
      issuer: provider.issuer,
      client_secret_set: true,
      redirect_uri: `${worker.baseUrl}${CALLBACK}`,
    })
    const [row] = await query(gateway(), 'SELECT * FROM identity_providers WHERE organization_id = $1', [
      tenant.organizationId,
    ])
    expect(JSON.stringify(row)).not.toContain(provider.client.secret)
  })

  it.each([
    ['that does not answer', { issuer: 'http://127.0.0.1:9' }, {}],
    ['that is no address of the internet', { issuer: 'http://169.254.169.254/' }, {}],
    ['that names another issuer', {}, { metadata: { issuer: 'https://evil.example' } }],
    ['whose page is a script', {}, { metadata: { authorization_endpoint: 'javascript:alert(1)' } }],
    ['without keys', {}, { metadata: { jwks_uri: undefined } }],
  ])('is refused %s, and the one before stays', async (_, change, faults) => {
    provider.faults = faults
    const body = { ...settings(), ...change }
    const answer = await send(`${worker.baseUrl}/api${tenant.base}/identity-provider`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${worker.adminToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect(answer.status).toBe(422)
    expect(await ask('GET', `${tenant.base}/identity-provider`)).toMatchObject({ issuer: provider.issuer })
  })

  it('lets nobody in once it is removed', async () => {
    const base = (await createTenant(worker)).base
    const { slug: own } = await ask<{ slug: string }>('GET', base)
    await ask('PUT', `${base}/identity-provider`, settings())
    await memberOfAccount({}, base)
    const browser = new ConsoleBrowser(worker)
    await signedIn(browser, { organization: own })
    const late = new ConsoleBrowser(worker)
    const address = await begun(late, { organization: own })
    await ask('DELETE', `${base}/identity-provider`)
    expect((await comeBack(late, address)).headers.location).toContain('sso_unavailable')
    expect((await browser.call('GET', '/me')).status).toBe(200)
    expect(await new ConsoleBrowser(worker).ask('GET', '/sign-in/methods')).toMatchObject({
      passkey: true,
      oidc: true,
    })
  })
})
