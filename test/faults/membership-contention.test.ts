import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { Authenticator } from '../harness/authenticator.ts'
import { ConsoleBrowser, setupLink, signedInBrowser } from '../harness/console-browser.ts'
import { query } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from '../local/real-servers.ts'
import { holdRow } from './support/held-row.ts'

// Sign-ins, setup links and changes of a member that wait for each other's rows. Each test makes them meet in one order.

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres)
  tellSkipped('contention over memberships (embedded Postgres has one session)', 'PostgreSQL')

type Options = Parameters<Authenticator['register']>[0]

describe.skipIf(!hasRealPostgres)('requests that meet at a membership', { timeout: 60_000 }, () => {
  let real: RealServer
  let gateway: StartedGateway
  let tenant: Tenant

  beforeAll(async () => {
    real = await startRealPostgres()
    gateway = await startGateway({ bundleDirectory: inject('bundleDirectory'), postgresUrl: real.url })
    tenant = await createTenant(gateway)
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    await real?.stop()
  })

  const newMember = (more: Record<string, unknown> = {}) => addMember(gateway, tenant.base, more)
  const browserOf = (userId: string) => signedInBrowser(gateway, tenant.base, userId)
  const pathOf = (userId: string) => `${tenant.base}/users/${userId}`
  const adminBrowser = async () => browserOf(await newMember({ role: 'admin' }))
  const holdMember = (...userIds: string[]) =>
    holdRow(real.url, 'SELECT 1 FROM memberships WHERE user_id = ANY ($1::uuid[])', [userIds])
  const holdSessions = (userId: string) =>
    holdRow(real.url, 'SELECT 1 FROM sessions WHERE user_id = $1::uuid AND ended_at IS NULL', [userId])

  async function signInOf(browser: ConsoleBrowser) {
    const { options } = await browser.ask<{ options: Options }>('POST', '/sign-in/passkey/begin')
    const credential = browser.authenticator.answer(options)
    return () => browser.call('POST', '/sign-in/passkey/finish', { credential })
  }

  async function passkeyOf(browser: ConsoleBrowser) {
    const { options } = await browser.ask<{ options: Options }>('POST', '/me/passkeys/begin')
    const credential = browser.authenticator.register(options)
    return () => browser.call('POST', '/me/passkeys/finish', { name: 'Phone', credential })
  }

  it('leave no setup link to a member that becomes an owner', async () => {
    const [admin, userId] = await Promise.all([adminBrowser(), newMember()])
    const row = await holdMember(userId)
    const link = await row.queue(admin.call('POST', `${pathOf(userId)}/setup-link`))
    const promotion = await row.queue(administrator(gateway).call('PUT', pathOf(userId), { role: 'owner' }))
    await row.release()
    const [made, promoted] = await Promise.all([link.answer, promotion.answer])
    expect([made.status, promoted.status]).toEqual([201, 200])
    const { token } = jsonOf(made) as { token: string }
    expect((await new ConsoleBrowser(gateway).call('POST', '/setup', { token })).status).toBe(401)
  })

  it('make no link of an administrator for whoever has become an owner first', async () => {
    const [admin, userId] = await Promise.all([adminBrowser(), newMember()])
    const earlier = await setupLink(gateway, tenant.base, userId)
    const row = await holdMember(userId)
    const promotion = await row.queue(
      administrator(gateway).call('PUT', pathOf(userId), { name: 'Ada', role: 'owner' }),
    )
    const link = await row.queue(admin.call('POST', `${pathOf(userId)}/setup-link`))
    await row.release()
    expect((await promotion.answer).status).toBe(200)
    expect([403, 422]).toContain((await link.answer).status)
    expect((await new ConsoleBrowser(gateway).call('POST', '/setup', { token: earlier })).status).toBe(401)
  })

  it('leave no session to a member that is disabled', async () => {
    const userId = await newMember()
    const browser = await browserOf(userId)
    const signIn = await signInOf(browser)
    const row = await holdMember(userId)
    const entry = await row.queue(signIn())
    const disabling = await row.queue(administrator(gateway).call('PUT', pathOf(userId), { disabled: true }))
    await row.release()
    expect((await entry.answer).status).toBe(200)
    expect((await disabling.answer).status).toBe(200)
    await administrator(gateway).ask('PUT', pathOf(userId), { disabled: false })
    expect((await browser.call('GET', '/me')).status).toBe(401)
  })

  it('leave no session to an organization that is disabled', async () => {
    const other = await createTenant(gateway)
    const userId = await addMember(gateway, other.base)
    const invited = await addMember(gateway, other.base)
    const browser = await signedInBrowser(gateway, other.base, userId)
    const signIn = await signInOf(browser)
    const token = await setupLink(gateway, other.base, invited)
    const newcomer = new ConsoleBrowser(gateway)
    const { options } = await newcomer.ask<{ options: Options }>('POST', '/setup/passkey/begin', { token })
    const row = await holdMember(userId, invited)
    const entries = [await row.queue(signIn()), await row.queue(newcomer.finishSetup(token, options))]
    const disabling = await row.queue(administrator(gateway).call('PUT', other.base, { disabled: true }))
    await row.release()
    for (const { answer } of entries) expect((await answer).status).toBe(200)
    expect((await disabling.answer).status).toBe(200)
    await administrator(gateway).ask('PUT', other.base, { disabled: false })
    for (const each of [browser, newcomer]) expect((await each.call('GET', '/me')).status).toBe(401)
  })

  it('leave no passkey of a session that a setup link ends', async () => {
    const userId = await newMember()
    const thief = await browserOf(userId)
    const add = await passkeyOf(thief)
    const row = await holdSessions(userId)
    const added = await row.queue(add())
    const link = await row.queue(administrator(gateway).call('POST', `${pathOf(userId)}/setup-link`))
    await row.release()
    expect((await added.answer).status).toBe(201)
    expect((await link.answer).status).toBe(201)
    const rows = await query(gateway, 'SELECT 1 FROM passkeys WHERE user_id = $1::uuid', [userId])
    expect(rows).toHaveLength(0)
  })

  it('do not wait for each other', async () => {
    const userId = await newMember()
    const token = await setupLink(gateway, tenant.base, userId)
    const browser = new ConsoleBrowser(gateway)
    const { options } = await browser.ask<{ options: Options }>('POST', '/setup/passkey/begin', { token })
    const row = await holdMember(userId)
    const link = await row.queue(administrator(gateway).call('POST', `${pathOf(userId)}/setup-link`))
    const entry = await row.queue(browser.finishSetup(token, options))
    await row.release()
    expect([(await link.answer).status, (await entry.answer).status]).toEqual([201, 401])
  })

  it('add no passkey beyond twenty', async () => {
    const userId = await newMember()
    const [first, second] = [await browserOf(userId), new ConsoleBrowser(gateway)]
    for (const [name, value] of first.cookies) second.cookies.set(name, value)
    for (let count = 1; count < 19; count++) expect((await (await passkeyOf(first))()).status).toBe(201)
    const adding = await Promise.all([passkeyOf(first), passkeyOf(second)])
    const row = await holdSessions(userId)
    const added = [await row.queue(adding[0]()), await row.queue(adding[1]())]
    await row.release()
    const statuses = await Promise.all(added.map(async ({ answer }) => (await answer).status))
    expect(statuses.sort()).toEqual([201, 422])
  })
})
