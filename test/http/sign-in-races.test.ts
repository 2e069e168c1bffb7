import { beforeAll, describe, expect, it } from 'vitest'
import type { Authenticator } from '../harness/authenticator.ts'
import { createConnection, createUnreadIntegration } from '../harness/connections.ts'
import { ConsoleBrowser, setupLink, signedInBrowser } from '../harness/console-browser.ts'
import { gateway } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { createAgent, definitionOf } from './support/agents.ts'

// Sign-ins, setup links and changes of a member that meet.

type Options = Parameters<Authenticator['register']>[0]

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const newMember = (more: Record<string, unknown> = {}) => addMember(gateway(), tenant.base, more)
const browserOf = (userId: string) => signedInBrowser(gateway(), tenant.base, userId)
const pathOf = (userId: string) => `${tenant.base}/users/${userId}`
const adminBrowser = async (role = 'admin') => browserOf(await newMember({ role }))

describe('a setup link of an administrator', () => {
  const linkBy = (browser: ConsoleBrowser, userId: string) =>
    browser.call('POST', `${pathOf(userId)}/setup-link`)

  it('is for a member that has nothing yet', async () => {
    const [admin, owner] = await Promise.all([adminBrowser(), adminBrowser('owner')])
    const [fresh, withKey, entitled] = await Promise.all([newMember(), newMember(), newMember()])
    const [withConnection, withAgent] = await Promise.all([newMember(), newMember()])
    const integration = await createUnreadIntegration(gateway(), tenant)
    await createConnection(gateway(), tenant, integration, { user_id: withConnection })
    await createAgent(tenant, definitionOf([{ instructions: 'Say hello.', name: 's' }]), gateway(), withAgent)
    const key = await addKey(gateway(), tenant.base, withKey)
    await administrator(gateway()).ask('PUT', `${pathOf(entitled)}/entitlements/auditor`)
    expect((await linkBy(admin, fresh)).status).toBe(201)
    expect((await linkBy(admin, withKey)).status).toBe(403)
    for (const userId of [entitled, withConnection, withAgent])
      expect((await linkBy(admin, userId)).status).toBe(403)
    expect((await linkBy(owner, withKey)).status).toBe(201)
    await administrator(gateway()).ask('DELETE', `${tenant.base}/keys/${key.id}`)
    expect((await linkBy(admin, withKey)).status).toBe(201)
  })

  it('ends when the member gets another role', async () => {
    const admin = await adminBrowser()
    const userId = await newMember()
    const { token } = await admin.ask<{ token: string }>('POST', `${pathOf(userId)}/setup-link`)
    await administrator(gateway()).ask('PUT', pathOf(userId), { role: 'owner' })
    const answer = await new ConsoleBrowser(gateway()).call('POST', '/setup', { token })
    expect(answer.status).toBe(401)
  })

  it('does not follow a sign-in that it meets', async () => {
    for (let trial = 0; trial < 5; trial++) {
      const [admin, userId] = await Promise.all([adminBrowser(), newMember()])
      const token = await setupLink(gateway(), tenant.base, userId)
      const member = new ConsoleBrowser(gateway())
      const { options } = await member.ask<{ options: Options }>('POST', '/setup/passkey/begin', { token })
      const [link, signedIn] = await Promise.all([linkBy(admin, userId), member.finishSetup(token, options)])
      // One of them came first: the other one is refused.
      expect([link.status, signedIn.status]).toSatisfy(
        ([made, entered]: number[]) =>
          (made === 201 && entered === 401) || ([403, 422].includes(made ?? 0) && entered === 200),
      )
      if (signedIn.status === 200) expect((await member.call('GET', '/me')).status).toBe(200)
    }
  })
})

describe('a setup link that takes a membership back', () => {
  it('leaves no session and no passkey of a sign-in that had begun', async () => {
    const userId = await newMember()
    const thief = await browserOf(userId)
    const { options: forSignIn } = await thief.ask<{ options: Options }>('POST', '/sign-in/passkey/begin')
    const credential = thief.authenticator.answer(forSignIn)
    const other = new ConsoleBrowser(gateway(), thief.authenticator)
    for (const [name, value] of thief.cookies) other.cookies.set(name, value)
    const { options: forPasskey } = await other.ask<{ options: Options }>('POST', '/me/passkeys/begin')
    const added = other.authenticator.register(forPasskey)
    const answers = await Promise.all([
      setupLink(gateway(), tenant.base, userId),
      thief.call('POST', '/sign-in/passkey/finish', { credential }),
      other.call('POST', '/me/passkeys/finish', { name: 'Phone', credential: added }),
    ])
    const owner = new ConsoleBrowser(gateway())
    expect((await owner.setUp(answers[0])).status).toBe(200)
    // Whatever came first, nothing of the thief is left.
    expect((await thief.call('GET', '/me')).status).toBe(401)
    const { data } = await owner.ask<{ data: unknown[] }>('GET', '/me/passkeys')
    expect(data).toHaveLength(1)
    const sessions = await owner.ask<{ data: unknown[] }>('GET', '/me/sessions')
    expect(sessions.data).toHaveLength(1)
  })
})

describe('a session', () => {
  it('ends when its browser signs in again', async () => {
    const userId = await newMember()
    const browser = await browserOf(userId)
    const stolen = new ConsoleBrowser(gateway())
    for (const [name, value] of browser.cookies) stolen.cookies.set(name, value)
    expect((await browser.signIn()).status).toBe(200)
    expect((await browser.call('GET', '/me')).status).toBe(200)
    expect((await stolen.call('GET', '/me')).status).toBe(401)
  })

  it('ends with its organization, and does not return with it', async () => {
    const other = await createTenant(gateway())
    const userId = await addMember(gateway(), other.base)
    const browser = await signedInBrowser(gateway(), other.base, userId)
    const invited = await addMember(gateway(), other.base)
    const token = await setupLink(gateway(), other.base, invited)
    const { ask } = administrator(gateway())
    await ask('PUT', other.base, { disabled: true })
    expect((await browser.call('GET', '/me')).status).toBe(401)
    await ask('PUT', other.base, { disabled: false })
    expect((await browser.call('GET', '/me')).status).toBe(401)
    expect((await new ConsoleBrowser(gateway()).call('POST', '/setup', { token })).status).toBe(401)
    expect((await browser.signIn()).status).toBe(200)
  })

  it('of nobody is not recorded as ended, nor a passkey as removed', async () => {
    const userId = await newMember()
    const browser = await browserOf(userId)
    const unknown = ['sessions/abcdefghijkl', 'passkeys/00000000-0000-4000-8000-000000000001']
    for (const path of unknown) expect((await browser.call('DELETE', `/me/${path}`)).status).toBe(404)
    const { ask } = administrator(gateway())
    await ask('POST', `${tenant.base}/ledger/flush`)
    const records = JSON.stringify(await ask('GET', `${tenant.base}/audit?limit=200`))
    expect(records).toContain(userId)
    for (const path of unknown) expect(records).not.toContain(path)
  })
})

describe('passkeys', () => {
  it('are at most twenty', async () => {
    const browser = await browserOf(await newMember())
    const add = async () => {
      const { options } = await browser.ask<{ options: Options }>('POST', '/me/passkeys/begin')
      const credential = browser.authenticator.register(options)
      return browser.call('POST', '/me/passkeys/finish', { name: 'One more', credential })
    }
    for (let count = 1; count < 20; count++) expect((await add()).status).toBe(201)
    const refused = await add()
    expect(refused.status, refused.text).toBe(422)
    expect(jsonOf(refused).message).toContain('at most 20')
  })
})
