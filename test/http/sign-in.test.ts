import { beforeAll, describe, expect, it } from 'vitest'
import { Authenticator } from '../harness/authenticator.ts'
import {
  CEREMONY_COOKIE,
  ConsoleBrowser,
  SESSION_COOKIE,
  setupLink,
  signedInBrowser,
} from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { addMember, administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'

type Options = Parameters<Authenticator['register']>[0]

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const newMember = (more: Record<string, unknown> = {}) => addMember(gateway(), tenant.base, more)
const linkOf = (userId: string) => setupLink(gateway(), tenant.base, userId)
const browserOf = (userId: string) => signedInBrowser(gateway(), tenant.base, userId)

const codeOf = (answer: Answer) => (jsonOf(answer).details as { code?: string } | undefined)?.code ?? null

function expectEnded(answer: Answer): void {
  expect(answer.status, answer.text).toBe(401)
  expect(codeOf(answer)).toBe('session_ended')
}

describe('a setup link', () => {
  it('registers a passkey, which signs in, and makes a key that calls a model', async () => {
    const userId = await newMember({ name: 'Ada' })
    const browser = new ConsoleBrowser(gateway())
    const token = await linkOf(userId)
    expect(await browser.ask('POST', '/setup', { token })).toMatchObject({
      user: { id: userId, name: 'Ada' },
      organization: { id: tenant.organizationId },
      role: 'member',
    })
    const answer = await browser.setUp(token)
    expect(answer.status, answer.text).toBe(200)
    const lines = answer.headers['set-cookie'] ?? []
    const cookie = lines.find((line) => line.startsWith(`${SESSION_COOKIE}=`)) ?? ''
    for (const attribute of ['HttpOnly', 'Secure', 'SameSite=Strict', 'Path=/'])
      expect(cookie).toContain(attribute)
    expect(cookie).not.toContain('Domain')
    expect(browser.cookies.has(CEREMONY_COOKIE)).toBe(false)
    expect(await browser.ask('GET', '/me')).toMatchObject({
      user: { id: userId },
      organization: { id: tenant.organizationId },
      role: 'member',
      entitlements: [],
      permissions: { 'keys.create': 'own', 'organizations.read': 'organization' },
      base_url: gateway().baseUrl,
    })
    const { key } = await browser.ask<{ key: string }>('POST', `${tenant.base}/keys`, { label: 'mine' })
    const call = await send(`${gateway().baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: bearer(key),
      body: JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content: 'Hello' }] }),
    })
    expect(call.status, call.text).toBe(200)
  })

  it('works once, also for two browsers at once', async () => {
    const token = await linkOf(await newMember())
    const browsers = [new ConsoleBrowser(gateway()), new ConsoleBrowser(gateway())]
    const answers = await Promise.all(browsers.map((browser) => browser.setUp(token)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
    const late = await new ConsoleBrowser(gateway()).call('POST', '/setup', { token })
    expect([late.status, codeOf(late)]).toEqual([401, 'setup_link_unusable'])
  })

  it('is ended only by the browser that began', async () => {
    const token = await linkOf(await newMember())
    const [first, other] = [new ConsoleBrowser(gateway()), new ConsoleBrowser(gateway())]
    const { options } = await first.ask<{ options: Options }>('POST', '/setup/passkey/begin', { token })
    const without = await other.finishSetup(token, options)
    expect([without.status, codeOf(without)]).toEqual([401, 'sign_in_expired'])
    // A ceremony of another link, and one of a sign-in.
    await other.ask('POST', '/setup/passkey/begin', { token: await linkOf(await newMember()) })
    expect((await other.finishSetup(token, options)).status).toBe(401)
    await other.ask('POST', '/sign-in/passkey/begin')
    expect((await other.finishSetup(token, options)).status).toBe(401)
    expect((await first.finishSetup(token, options)).status).toBe(200)
  })

  it.each([
    [
      'is expired',
      async (_: string, token: string) =>
        void (await query(
          gateway(),
          `UPDATE setup_links SET expires_at = now() - interval '1 second' WHERE id = $1`,
          [token.split('_')[1]],
        )),
    ],
    ['is replaced', async (userId: string) => void (await linkOf(userId))],
    [
      'is of a disabled user',
      async (userId: string) =>
        void (await administrator(gateway()).ask('DELETE', `${tenant.base}/users/${userId}`)),
    ],
    [
      'is of a user that was disabled in between',
      async (userId: string) => {
        const { ask } = administrator(gateway())
        await ask('DELETE', `${tenant.base}/users/${userId}`)
        await ask('PUT', `${tenant.base}/users/${userId}`, { disabled: false })
      },
    ],
  ])('does nothing when it %s', async (_, spoil) => {
    const userId = await newMember()
    const token = await linkOf(userId)
    const browser = new ConsoleBrowser(gateway())
    const { options } = await browser.ask<{ options: Options }>('POST', '/setup/passkey/begin', { token })
    await spoil(userId, token)
    for (const answer of [
      await browser.finishSetup(token, options),
      await browser.call('POST', '/setup', { token }),
    ]) {
      expect([answer.status, codeOf(answer)]).toEqual([401, 'setup_link_unusable'])
    }
  })

  it('takes earlier passkeys and sessions away', async () => {
    const userId = await newMember()
    const browser = await browserOf(userId)
    await linkOf(userId)
    expectEnded(await browser.call('GET', '/me'))
    expect((await browser.signIn()).status).toBe(401)
  })

  it('is not made for a service account, nor for a disabled user', async () => {
    const { call, ask } = administrator(gateway())
    const service = await newMember({ kind: 'service' })
    const disabled = await newMember()
    await ask('DELETE', `${tenant.base}/users/${disabled}`)
    for (const userId of [service, disabled]) {
      expect((await call('POST', `${tenant.base}/users/${userId}/setup-link`)).status).toBe(422)
    }
  })

  it.each([
    ['without verification of its user', { isVerified: false }],
    ['of another origin', { origin: 'https://elsewhere.example' }],
  ])('does not take a passkey %s', async (_, behaviour) => {
    const authenticator = new Authenticator({ origin: gateway().baseUrl, ...behaviour })
    const answer = await new ConsoleBrowser(gateway(), authenticator).setUp(await linkOf(await newMember()))
    expect([answer.status, codeOf(answer)]).toEqual([401, 'passkey_refused'])
  })
})

describe('a passkey', () => {
  it('signs in again after signing out, and the ended session stays ended', async () => {
    const browser = await browserOf(await newMember())
    const old = browser.headers()
    await browser.ask('POST', '/me/sign-out')
    expect(browser.cookies.has(SESSION_COOKIE)).toBe(false)
    expectEnded(await browser.call('GET', '/me', undefined, old))
    const answer = await browser.signIn()
    expect(answer.status, answer.text).toBe(200)
    expect((await browser.call('GET', '/me')).status).toBe(200)
    expectEnded(await new ConsoleBrowser(gateway()).call('GET', '/me', undefined, old))
  })

  it('answers a challenge once', async () => {
    const browser = await browserOf(await newMember())
    const { options } = await browser.ask<{ options: Options }>('POST', '/sign-in/passkey/begin')
    const headers = browser.headers()
    const body = { credential: browser.authenticator.answer(options) }
    const finish = () => browser.call('POST', '/sign-in/passkey/finish', body, headers)
    // A counter that does not grow is refused by itself; this authenticator counts none.
    const answers = [await finish(), await finish()]
    expect(answers.map(({ status }) => status)).toEqual([200, 401])
    await query(gateway(), 'UPDATE passkeys SET counter = 0 WHERE credential_id = $1', [body.credential.id])
    const repeated = await finish()
    expect([repeated.status, codeOf(repeated)]).toEqual([401, 'sign_in_expired'])
  })

  it('enters the organization that it was made in, and no other of the same user', async () => {
    const other = await createTenant(gateway())
    const email = `${uniqueName('shared')}@example.com`
    const userId = await newMember({ email })
    expect(await addMember(gateway(), other.base, { email })).toBe(userId)
    const authenticator = new Authenticator({ origin: gateway().baseUrl })
    const browser = await signedInBrowser(gateway(), tenant.base, userId, authenticator)
    expect((await browser.call('GET', other.base)).status).toBe(404)
    const there = await signedInBrowser(gateway(), other.base, userId, authenticator)
    expect(await there.ask('GET', '/me')).toMatchObject({ organization: { id: other.organizationId } })
    const [first, second] = authenticator.credentials
    expect(first?.userHandle).not.toBe(second?.userHandle)
    await browser.signIn(first)
    expect(await browser.ask('GET', '/me')).toMatchObject({ organization: { id: tenant.organizationId } })
    // A credential of one under the handle of the other.
    expect(
      (await browser.signIn(first && second && { ...first, userHandle: second.userHandle })).status,
    ).toBe(401)
  })

  it('is registered beside others, listed, and removed', async () => {
    const browser = await browserOf(await newMember())
    const { options } = await browser.ask<{ options: Options }>('POST', '/me/passkeys/begin')
    const credential = browser.authenticator.register(options)
    const added = await browser.ask('POST', '/me/passkeys/finish', { name: 'Phone', credential })
    const names = async () =>
      (await browser.ask<{ data: Array<{ name: string }> }>('GET', '/me/passkeys')).data.map(
        ({ name }) => name,
      )
    expect(await names()).toEqual(['Phone', 'Laptop'])
    await browser.ask('DELETE', `/me/passkeys/${added.id}`)
    expect(await names()).toEqual(['Laptop'])
    expect((await browser.call('DELETE', `/me/passkeys/${added.id}`)).status).toBe(404)
    expect((await browser.signIn()).status).toBe(401)
    expect((await browser.signIn(browser.authenticator.credentials[0])).status).toBe(200)
  })

  it('of another user is neither shown nor removed', async () => {
    const [ada, grace] = await Promise.all([browserOf(await newMember()), browserOf(await newMember())])
    const { data } = await ada.ask<{ data: Array<{ id: string }> }>('GET', '/me/passkeys')
    expect((await grace.call('DELETE', `/me/passkeys/${data[0]?.id}`)).status).toBe(404)
    const sessions = await ada.ask<{ data: Array<{ id: string }> }>('GET', '/me/sessions')
    expect((await grace.call('DELETE', `/me/sessions/${sessions.data[0]?.id}`)).status).toBe(404)
  })
})

describe('a session', () => {
  const idOf = async (browser: ConsoleBrowser) =>
    (await browser.ask<{ session: { id: string } }>('GET', '/me')).session.id

  it('ends with the next request after its user was disabled, and does not come back', async () => {
    const userId = await newMember()
    const browser = await browserOf(userId)
    const headers = browser.headers()
    const { ask } = administrator(gateway())
    await ask('DELETE', `${tenant.base}/users/${userId}`)
    const answer = await browser.call('GET', '/me')
    expectEnded(answer)
    expect(browser.cookies.has(SESSION_COOKIE)).toBe(false)
    await ask('PUT', `${tenant.base}/users/${userId}`, { disabled: false })
    expectEnded(await browser.call('GET', '/me', undefined, headers))
  })

  it('ends with its organization', async () => {
    const other = await createTenant(gateway())
    const browser = await signedInBrowser(gateway(), other.base, other.userId)
    await administrator(gateway()).ask('PUT', other.base, { disabled: true })
    expectEnded(await browser.call('GET', '/me'))
  })

  it('is listed and ended by another session of its user', async () => {
    const browser = await browserOf(await newMember())
    const second = new ConsoleBrowser(gateway(), browser.authenticator)
    expect((await second.signIn()).status).toBe(200)
    const { data } = await second.ask<{ data: Array<{ id: string; is_current: boolean }> }>(
      'GET',
      '/me/sessions',
    )
    expect(data.map(({ is_current }) => is_current).sort()).toEqual([false, true])
    await second.ask('DELETE', `/me/sessions/${await idOf(browser)}`)
    expectEnded(await browser.call('GET', '/me'))
    expect((await second.call('GET', '/me')).status).toBe(200)
  })

  it.each([
    ['12 hours without use', `last_seen_at = now() - interval '12 hours'`],
    ['7 days', `expires_at = now()`],
  ])('ends after %s', async (_, change) => {
    const browser = await browserOf(await newMember())
    await query(gateway(), `UPDATE sessions SET ${change} WHERE id = $1`, [await idOf(browser)])
    expectEnded(await browser.call('GET', '/me'))
  })

  it('goes on while it is used, and may change credentials for ten minutes', async () => {
    const browser = await browserOf(await newMember())
    const id = await idOf(browser)
    await query(
      gateway(),
      `UPDATE sessions SET last_seen_at = now() - interval '11 hours', signed_in_at = now() - interval '11 minutes'
       WHERE id = $1`,
      [id],
    )
    expect((await browser.call('GET', '/me')).status).toBe(200)
    const answer = await browser.call('POST', '/me/passkeys/begin')
    expect([answer.status, codeOf(answer)]).toEqual([401, 'sign_in_again'])
    await expect
      .poll(async () => {
        const [row] = await query(
          gateway(),
          `SELECT last_seen_at > now() - interval '1 minute' AS noted FROM sessions WHERE id = $1`,
          [id],
        )
        return row?.noted
      })
      .toBe(true)
  })

  it('lasts seven days from its sign-in', async () => {
    const browser = await browserOf(await newMember())
    const [row] = await query(
      gateway(),
      `SELECT extract(epoch FROM expires_at - signed_in_at) AS seconds FROM sessions WHERE id = $1`,
      [await idOf(browser)],
    )
    expect(Number(row?.seconds)).toBe(7 * 24 * 3_600)
  })
})

describe('a request with a cookie', () => {
  it.each([
    ['a page of the gateway', { 'sec-fetch-site': 'same-origin' }, 201],
    ['an old browser at the gateway', { origin: 'own' }, 201],
    ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a subdomain', { 'sec-fetch-site': 'same-site' }, 403],
    ['the address bar', { 'sec-fetch-site': 'none' }, 403],
    ['another site that claims our origin', { 'sec-fetch-site': 'cross-site', origin: 'own' }, 403],
    ['an old browser at another site', { origin: 'https://elsewhere.example' }, 403],
    ['an old browser at an opaque origin', { origin: 'null' }, 403],
    ['nobody that says where', {}, 403],
  ])('from %s changes or not, and reads', async (_, marks, status) => {
    const browser = await browserOf(await newMember())
    const { 'sec-fetch-site': __, ...rest } = browser.headers()
    const own = 'origin' in marks && marks.origin === 'own' ? { origin: gateway().baseUrl } : {}
    const headers = { ...rest, ...(marks as Record<string, string>), ...own }
    const answer = await browser.call('POST', `${tenant.base}/keys`, { label: 'x' }, headers)
    expect(answer.status, answer.text).toBe(status)
    expect((await browser.call('GET', '/me', undefined, headers)).status).toBe(200)
    const begun = await browser.call('POST', '/sign-in/passkey/begin', undefined, headers)
    expect(begun.status).toBe(status === 201 ? 200 : 403)
  })

  it('is JSON', async () => {
    const browser = await browserOf(await newMember())
    const headers = { ...browser.headers(), 'content-type': 'text/plain' }
    expect((await browser.call('POST', `${tenant.base}/keys`, { label: 'x' }, headers)).status).toBe(400)
  })

  it('is decided by an Authorization header alone, where it has one', async () => {
    const browser = await browserOf(await newMember())
    for (const authorization of [
      'Bearer wrong',
      'Basic x',
      `Bearer ${browser.cookies.get(SESSION_COOKIE)}`,
    ]) {
      const answer = await browser.call('GET', '/me', undefined, { ...browser.headers(), authorization })
      expect(answer.status).toBe(401)
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    const asAdministrator = { ...browser.headers(), authorization: `Bearer ${gateway().adminToken}` }
    const me = await browser.call('GET', '/me', undefined, asAdministrator)
    expect([me.status, codeOf(me)]).toEqual([404, 'no_user'])
    expect((await browser.call('GET', '/providers', undefined, asAdministrator)).status).toBe(200)
  })

  it('does nothing under /v1, and its token is no key', async () => {
    const browser = await browserOf(await newMember())
    const token = browser.cookies.get(SESSION_COOKIE) ?? ''
    for (const headers of [browser.headers(), bearer(token), { 'x-api-key': token }]) {
      expect((await send(`${gateway().baseUrl}/v1/models`, { headers })).status).toBe(401)
    }
  })

  it('of a token that never was is refused, and the cookie is cleared', async () => {
    const browser = await browserOf(await newMember())
    const token = browser.cookies.get(SESSION_COOKIE) ?? ''
    for (const wrong of ['x', tenant.key, `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`]) {
      browser.cookies.set(SESSION_COOKIE, wrong)
      expectEnded(await browser.call('GET', '/me'))
      expect(browser.cookies.has(SESSION_COOKIE)).toBe(false)
    }
  })
})

describe('what signing in leaves', () => {
  it('is on record with its user, and without a token, cookie or digest', async () => {
    const userId = await newMember()
    const token = await linkOf(userId)
    const browser = new ConsoleBrowser(gateway())
    const { options } = await browser.ask<{ options: Options }>('POST', '/setup/passkey/begin', { token })
    const ceremony = browser.cookies.get(CEREMONY_COOKIE) ?? ''
    await browser.finishSetup(token, options)
    const session = browser.cookies.get(SESSION_COOKIE) ?? ''
    await browser.call('POST', '/setup', { token })
    const added = await browser.ask<{ options: Options }>('POST', '/me/passkeys/begin')
    await browser.ask('POST', '/me/passkeys/finish', {
      name: 'the phone of Ada Lovelace',
      credential: browser.authenticator.register(added.options),
    })
    await browser.ask('POST', `${tenant.base}/keys`, { label: `my ${session}` })
    await browser.ask('POST', '/me/sign-out')
    const { ask } = administrator(gateway())
    await ask('POST', `${tenant.base}/ledger/flush`)
    const records = JSON.stringify(await ask('GET', `${tenant.base}/audit?limit=200`))
    const actions = ['setup_link.created', 'session.started', 'passkey.registered', 'api_key.created']
    for (const action of [...actions, 'session.ended']) expect(records).toContain(action)
    expect(records).not.toContain('Lovelace')
    expect(records).toContain(`"session":"${session.split('_')[1]}"`)
    const rows = await query(gateway(), 'SELECT digest FROM sessions WHERE user_id = $1', [userId])
    const stored = JSON.stringify(
      await query(gateway(), 'SELECT * FROM sessions WHERE user_id = $1', [userId]),
    )
    const secrets = [token, session, ceremony, options.challenge]
    for (const secret of secrets) expect(`${records}${stored}`).not.toContain(secret)
    expect(rows.length).toBe(1)
    for (const { digest } of rows) expect(records).not.toContain(String(digest))
  })
})
