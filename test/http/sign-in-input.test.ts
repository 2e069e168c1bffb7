import { beforeAll, describe, expect, it } from 'vitest'
import { createToken } from '../../src/identity/secret-token.ts'
import type { Authenticator } from '../harness/authenticator.ts'
import { ConsoleBrowser, SESSION_COOKIE, setupLink, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { addMember, createTenant, type Tenant } from '../harness/tenant.ts'

type Options = Parameters<Authenticator['register']>[0]

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

describe('what a browser sends beside its signature', () => {
  it.each([
    ['a text', 'usb', []],
    ['null', null, []],
    ['numbers and names that are none', [1, 'usb', 'a\u0000b', 'X'.repeat(30), null], ['usb']],
  ])('can be anything: transports as %s', async (_, transports, kept) => {
    const userId = await addMember(gateway(), tenant.base)
    const token = await setupLink(gateway(), tenant.base, userId)
    const browser = new ConsoleBrowser(gateway())
    const { options } = await browser.ask<{ options: Options }>('POST', '/setup/passkey/begin', { token })
    const { response, ...credential } = browser.authenticator.register(options)
    const sent = { ...credential, response: { ...response, transports } }
    const answer = await browser.call('POST', '/setup/passkey/finish', {
      token,
      name: 'Laptop',
      credential: sent,
    })
    expect(answer.status, answer.text).toBe(200)
    const rows = await query(gateway(), 'SELECT transports FROM passkeys WHERE user_id = $1', [userId])
    expect(rows).toEqual([{ transports: kept }])
  })

  it.each(['a\u0000b', '', 'a/b', 'x'.repeat(2_001)])(
    'must name its passkey in base64url: %j',
    async (id) => {
      const browser = new ConsoleBrowser(gateway())
      await browser.ask('POST', '/sign-in/passkey/begin')
      const answer = await browser.call('POST', '/sign-in/passkey/finish', {
        credential: { id, response: {} },
      })
      expect(answer.status, answer.text).toBe(400)
    },
  )
})

describe('a role', () => {
  it('is given by an owner who has signed in within ten minutes', async () => {
    const owner = await addMember(gateway(), tenant.base, { role: 'owner' })
    const member = `${tenant.base}/users/${await addMember(gateway(), tenant.base)}`
    const browser = await signedInBrowser(gateway(), tenant.base, owner)
    expect((await browser.call('PUT', member, { role: 'admin' })).status).toBe(200)
    const late = await addMember(gateway(), tenant.base, { role: 'owner' })
    const other = await signedInBrowser(gateway(), tenant.base, late)
    await query(
      gateway(),
      `UPDATE sessions SET signed_in_at = now() - interval '11 minutes' WHERE user_id = $1`,
      [late],
    )
    const refused = await other.call('PUT', member, { role: 'member' })
    expect(refused.status, refused.text).toBe(401)
    expect(jsonOf(refused).details).toMatchObject({ code: 'sign_in_again' })
    expect((await other.call('PUT', member, { name: 'Grace' })).status).toBe(200)
  })
})

describe('invented sessions', () => {
  it('are soon looked up a few times a second only, as are all sessions of the address then', async () => {
    const browser = await signedInBrowser(gateway(), tenant.base, await addMember(gateway(), tenant.base))
    const own = String(browser.cookies.get(SESSION_COOKIE))
    const statuses = new Set<number>()
    for (let batch = 0; batch < 8; batch++) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => {
          browser.cookies.set(SESSION_COOKIE, createToken('hgs').token)
          return browser.call('GET', '/me')
        }),
      )
      for (const { status } of answers) statuses.add(status)
    }
    expect([...statuses].sort()).toEqual([401, 429])
    browser.cookies.set(SESSION_COOKIE, own)
    const answers = await Promise.all(Array.from({ length: 30 }, () => browser.call('GET', '/me')))
    expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(10)
    // No cookie was taken away.
    expect(browser.cookies.get(SESSION_COOKIE)).toBe(own)
    const elsewhere = new ConsoleBrowser(gateway())
    elsewhere.cookies.set(SESSION_COOKIE, own)
    expect((await elsewhere.call('GET', '/me')).status).toBe(200)
  })
})
