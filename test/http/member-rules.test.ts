import { beforeAll, describe, expect, it } from 'vitest'
import { createConnection, createUnreadIntegration } from '../harness/connections.ts'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { jsonOf, send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { createAgent, definitionOf } from './support/agents.ts'

let tenant: Tenant

type Listed<Row> = { data: Row[] }

interface Person {
  userId: string
  browser: ConsoleBrowser
}

async function person(role: string, base = tenant.base): Promise<Person> {
  const userId = await addMember(gateway(), base, { role })
  return { userId, browser: await signedInBrowser(gateway(), base, userId) }
}

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const statusOf = async ({ browser }: Person, method: string, path: string, body?: unknown) =>
  (await browser.call(method, tenant.base + path, body)).status

describe('lists of a member', () => {
  it('hold what is its own', async () => {
    const [ada, grace] = await Promise.all([person('member'), person('member')])
    const { ask } = administrator(gateway())
    const { id: groupId } = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'a' })
    const { id: otherGroup } = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'b' })
    await ask('PUT', `${tenant.base}/groups/${groupId}/members/${ada.userId}`)
    const grants = [
      { subject_type: 'user', subject_id: ada.userId, model_id: 'scripted-chat' },
      { subject_type: 'user', subject_id: grace.userId, model_id: 'scripted-chat' },
      { subject_type: 'group', subject_id: groupId, model_id: 'scripted-chat' },
      { subject_type: 'group', subject_id: otherGroup, model_id: 'scripted-chat' },
      { subject_type: 'role', subject_id: 'member', model_id: 'scripted-chat' },
      { subject_type: 'role', subject_id: 'admin', model_id: 'scripted-chat' },
    ]
    for (const grant of grants) await ask('POST', `${tenant.base}/grants`, grant)
    for (const { userId } of [ada, grace]) {
      const { key } = await addKey(gateway(), tenant.base, userId)
      const body = JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content: 'Hello' }] })
      const call = await send(`${gateway().baseUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: bearer(key),
        body,
      })
      expect(call.status).toBe(200)
    }
    await ask('POST', `${tenant.base}/ledger/flush`)
    const read = <Row>(path: string) => ada.browser.ask<Listed<Row>>('GET', path)
    const keys = await read<{ user_id: string }>(`${tenant.base}/keys`)
    expect(keys.data.map(({ user_id }) => user_id)).toEqual([ada.userId])
    expect((await read(`${tenant.base}/keys?user_id=${grace.userId}`)).data).toEqual([])
    const users = await read<{ id: string }>(`${tenant.base}/users`)
    expect(users.data.map(({ id }) => id)).toEqual([ada.userId])
    const totals = await read<{ user: string }>(`${tenant.base}/usage?group_by=user`)
    expect(totals.data.map(({ user }) => user)).toEqual([ada.userId])
    const events = await read<{ user_id: string }>(`${tenant.base}/usage/events`)
    expect(events.data.map(({ user_id }) => user_id)).toEqual([ada.userId])
    const organizations = await read<{ id: string }>('/organizations')
    expect(organizations.data.map(({ id }) => id)).toEqual([tenant.organizationId])
    const granted = await read<{ subject_id: string }>(`${tenant.base}/grants?model_id=scripted-chat`)
    expect(granted.data.map(({ subject_id }) => subject_id).sort()).toEqual(
      [ada.userId, groupId, 'member'].sort(),
    )
  })
})

describe('a key', () => {
  it('is made for oneself, by administrators for service accounts, for no other person', async () => {
    const [member, admin] = await Promise.all([person('member'), person('admin')])
    const service = await addMember(gateway(), tenant.base, { kind: 'service' })
    const keyFor = (by: Person, userId?: string) =>
      statusOf(by, 'POST', '/keys', { label: 'x', ...(userId !== undefined && { user_id: userId }) })
    expect(await keyFor(member)).toBe(201)
    expect(await keyFor(member, member.userId)).toBe(201)
    expect(await keyFor(member, service)).toBe(403)
    expect(await keyFor(member, admin.userId)).toBe(403)
    expect(await keyFor(admin, service)).toBe(201)
    expect(await keyFor(admin, member.userId)).toBe(403)
    expect(await keyFor(admin)).toBe(201)
    // The administration token names the user.
    expect((await administrator(gateway()).call('POST', `${tenant.base}/keys`, { label: 'x' })).status).toBe(
      422,
    )
  })

  it('of a service account that is an owner is made and replaced by owners only', async () => {
    const [admin, owner] = await Promise.all([person('admin'), person('owner')])
    const service = await addMember(gateway(), tenant.base, { kind: 'service', role: 'owner' })
    const { id } = await addKey(gateway(), tenant.base, service)
    const makes = (by: Person) => statusOf(by, 'POST', '/keys', { label: 'x', user_id: service })
    const rotates = (by: Person) => statusOf(by, 'POST', `/keys/${id}/rotate`, { ends_in_seconds: 0 })
    expect([await makes(admin), await rotates(admin)]).toEqual([403, 403])
    expect([await makes(owner), await rotates(owner)]).toEqual([201, 201])
  })

  it('is no way around: an agent acts for its maker or a service account', async () => {
    const [admin, member] = await Promise.all([person('admin'), person('member')])
    const definition = {
      name: 'a',
      steps: [{ name: 's', instructions: 'Say hello.', model: 'scripted-chat' }],
    }
    const answer = await admin.browser.call('POST', `${tenant.base}/agents`, {
      created_by: member.userId,
      definition,
    })
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('another person')])
  })
})

describe('an agent whose triggers run as another person', () => {
  const definition = (triggers: object[]) =>
    definitionOf([{ instructions: 'Say hello.', name: 's' }], { triggers })
  const hook = { kind: 'webhook', name: 'hook' }

  it('is changed by an administrator only to have none, and removed', async () => {
    const [admin, member] = await Promise.all([person('admin'), person('member')])
    const id = await createAgent(tenant, definition([hook]), gateway(), member.userId)
    const change = (version: number, triggers: object[]) =>
      admin.browser.call('PUT', `${tenant.base}/agents/${id}`, { version, definition: definition(triggers) })
    const refused = await change(1, [hook])
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('another person')])
    expect(await statusOf(admin, 'POST', `/agents/${id}/triggers/hook/secret`)).toBe(403)
    expect((await change(1, [])).status).toBe(200)
    expect((await change(2, [hook])).status).toBe(403)
    expect((await change(2, [])).status).toBe(200)
    expect(await statusOf(admin, 'DELETE', `/agents/${id}`)).toBe(200)
  })

  it('is not one of a service account, nor of oneself, nor any for the administration token', async () => {
    const admin = await person('admin')
    const service = await addMember(gateway(), tenant.base, { kind: 'service' })
    for (const creator of [service, admin.userId]) {
      const id = await createAgent(tenant, definition([]), gateway(), creator)
      const body = { version: 1, definition: definition([hook]) }
      expect(await statusOf(admin, 'PUT', `/agents/${id}`, body)).toBe(200)
      expect(await statusOf(admin, 'POST', `/agents/${id}/triggers/hook/secret`)).toBe(200)
    }
    const id = await createAgent(tenant, definition([hook]))
    const body = { version: 1, definition: definition([hook]) }
    expect((await administrator(gateway()).call('PUT', `${tenant.base}/agents/${id}`, body)).status).toBe(200)
  })
})

describe('a connection', () => {
  let integration: string
  beforeAll(async () => {
    integration = await createUnreadIntegration(gateway(), tenant)
  })

  it('is made for oneself, the organization and service accounts, by administrators', async () => {
    const [admin, member] = await Promise.all([person('admin'), person('member')])
    const service = await addMember(gateway(), tenant.base, { kind: 'service' })
    const create = (by: Person, userId?: string | null) =>
      statusOf(by, 'POST', '/connections', {
        integration,
        display_name: 'Account',
        credential: { secret: 'token' },
        ...(userId !== undefined && { user_id: userId }),
      })
    for (const owner of [undefined, null, admin.userId, service]) expect(await create(admin, owner)).toBe(201)
    expect(await create(admin, member.userId)).toBe(403)
    // Members connect below /v1, with a key.
    for (const owner of [undefined, member.userId, admin.userId])
      expect(await create(member, owner)).toBe(403)
  })

  it('of another person is read, revoked and removed, nothing else', async () => {
    const [admin, member] = await Promise.all([person('admin'), person('member')])
    const { id: groupId } = await administrator(gateway()).ask<{ id: string }>(
      'POST',
      `${tenant.base}/groups`,
      { name: crypto.randomUUID() },
    )
    const { id } = await createConnection(gateway(), tenant, integration, { user_id: member.userId })
    const path = `/connections/${id}`
    expect(await statusOf(admin, 'GET', path)).toBe(200)
    for (const change of [
      { display_name: 'Mine' },
      { user_id: admin.userId },
      { user_id: null },
      { credential: { secret: 'token' } },
      { status: 'revoked', user_id: admin.userId },
      { status: 'active' },
    ])
      expect(await statusOf(admin, 'PUT', path, change), JSON.stringify(change)).toBe(403)
    expect(await statusOf(admin, 'POST', `${path}/connect`, {})).toBe(403)
    expect(await statusOf(admin, 'PUT', `${path}/shares/${groupId}`, {})).toBe(403)
    expect(await statusOf(admin, 'PUT', path, { status: 'revoked' })).toBe(200)
    expect(await statusOf(admin, 'DELETE', path)).toBe(200)
  })

  it('of the organization is not given to another person, but to oneself', async () => {
    const [admin, member] = await Promise.all([person('admin'), person('member')])
    const { id } = await createConnection(gateway(), tenant, integration)
    const give = (userId: string) => statusOf(admin, 'PUT', `/connections/${id}`, { user_id: userId })
    expect(await give(member.userId)).toBe(403)
    expect(await give(admin.userId)).toBe(200)
  })
})

describe('a group', () => {
  const newGroup = async () => {
    const name = crypto.randomUUID()
    const made = await administrator(gateway()).ask<{ id: string }>('POST', `${tenant.base}/groups`, { name })
    return made.id
  }
  const set = (by: Person, method: string, groupId: string, userId: string) =>
    by.browser.call(method, `${tenant.base}/groups/${groupId}/members/${userId}`)

  it('is neither entered nor left by an administrator itself', async () => {
    const [admin, owner] = await Promise.all([person('admin'), person('owner')])
    const groupId = await newGroup()
    const entering = await set(admin, 'PUT', groupId, admin.userId)
    expect([entering.status, jsonOf(entering)]).toEqual([
      403,
      expect.objectContaining({ details: expect.objectContaining({ code: 'permission_missing' }) }),
    ])
    const path = `${tenant.base}/groups/${groupId}/members/${admin.userId}`
    await administrator(gateway()).ask('PUT', path)
    expect((await set(admin, 'DELETE', groupId, admin.userId)).status).toBe(403)
    const { data } = await admin.browser.ask<Listed<{ id: string }>>(
      'GET',
      `${tenant.base}/groups/${groupId}/members`,
    )
    expect(data.map(({ id }) => id)).toEqual([admin.userId])
    for (const method of ['PUT', 'DELETE'])
      expect((await set(owner, method, groupId, owner.userId)).status).toBe(200)
  })

  it('gives an administrator no way to the connection of another person', async () => {
    const [admin, ada, grace, owner] = await Promise.all(
      ['admin', 'member', 'member', 'owner'].map((role) => person(role)),
    )
    if (!admin || !ada || !grace || !owner) throw new Error('a person is missing')
    const integration = await createUnreadIntegration(gateway(), tenant)
    const sharedBy = async ({ userId }: Person) => {
      const [groupId, { id }] = await Promise.all([
        newGroup(),
        createConnection(gateway(), tenant, integration, { user_id: userId }),
      ])
      await administrator(gateway()).ask('PUT', `${tenant.base}/connections/${id}/shares/${groupId}`, {})
      return groupId
    }
    const [ofAda, ofAdmin, unshared] = await Promise.all([sharedBy(ada), sharedBy(admin), newGroup()])
    for (const { userId } of [grace, ada]) expect((await set(admin, 'PUT', ofAda, userId)).status).toBe(403)
    for (const groupId of [ofAdmin, unshared])
      expect((await set(admin, 'PUT', groupId, grace.userId)).status).toBe(200)
    expect((await set(owner, 'PUT', ofAda, grace.userId)).status).toBe(200)
    expect((await set(admin, 'DELETE', ofAda, grace.userId)).status).toBe(200)
  })
})

describe('rights of members', () => {
  it('include the rate limit, which nobody raises for itself', async () => {
    const [owner, admin] = await Promise.all([person('owner'), person('admin')])
    const limit = (by: Person, of: Person, value: number | null) =>
      statusOf(by, 'PUT', `/users/${of.userId}`, { rate_limit_per_minute: value })
    for (const each of [owner, admin]) expect(await limit(each, each, 100_000)).toBe(403)
    expect(await limit(owner, admin, 50)).toBe(200)
    expect(await limit(admin, admin, 51)).toBe(403)
    expect(await limit(admin, admin, null)).toBe(403)
    expect(await limit(admin, admin, 50)).toBe(200)
    expect(await limit(admin, admin, 40)).toBe(200)
    expect(await limit(admin, admin, 50)).toBe(403)
  })

  it('are not raised by themselves', async () => {
    const [owner, admin] = await Promise.all([person('owner'), person('admin')])
    expect(await statusOf(admin, 'PUT', `/users/${admin.userId}`, { role: 'owner' })).toBe(403)
    expect(await statusOf(owner, 'PUT', `/users/${owner.userId}`, { role: 'member' })).toBe(403)
    expect(await statusOf(owner, 'PUT', `/users/${owner.userId}/entitlements/auditor`)).toBe(403)
    expect(await statusOf(admin, 'PUT', `/users/${owner.userId}/entitlements/auditor`)).toBe(403)
  })

  it('are given by owners only, and an administrator leaves owners alone', async () => {
    const [owner, admin] = await Promise.all([person('owner'), person('admin')])
    const memberId = await addMember(gateway(), tenant.base)
    const email = () => `u${crypto.randomUUID()}@example.com`
    expect(await statusOf(admin, 'PUT', `/users/${memberId}`, { role: 'admin' })).toBe(403)
    expect(await statusOf(admin, 'PUT', `/users/${memberId}`, { name: 'Grace' })).toBe(200)
    expect(await statusOf(admin, 'POST', '/users', { email: email(), name: 'x', role: 'owner' })).toBe(403)
    expect(await statusOf(admin, 'POST', '/users', { email: email(), name: 'x' })).toBe(201)
    for (const change of [{ name: 'x' }, { disabled: true }, { rate_limit_per_minute: 1 }]) {
      expect(await statusOf(admin, 'PUT', `/users/${owner.userId}`, change)).toBe(403)
    }
    expect(await statusOf(admin, 'DELETE', `/users/${owner.userId}`)).toBe(403)
    expect(await statusOf(admin, 'POST', `/users/${owner.userId}/setup-link`)).toBe(403)
    expect(await statusOf(owner, 'PUT', `/users/${memberId}`, { role: 'admin' })).toBe(200)
    expect(await statusOf(owner, 'PUT', `/users/${memberId}/entitlements/auditor`)).toBe(200)
  })

  it('have a setup link by an administrator only before the first sign-in', async () => {
    const [owner, admin, member] = await Promise.all([person('owner'), person('admin'), person('member')])
    const invited = await addMember(gateway(), tenant.base)
    expect(await statusOf(admin, 'POST', `/users/${invited}/setup-link`)).toBe(201)
    expect(await statusOf(admin, 'POST', `/users/${member.userId}/setup-link`)).toBe(403)
    expect(await statusOf(owner, 'POST', `/users/${member.userId}/setup-link`)).toBe(201)
  })

  it('leave the organization an owner, also with two demotions at once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { base, organizationId } = await createTenant(gateway())
      const [ada, grace] = await Promise.all([person('owner', base), person('owner', base)])
      const demote = (by: Person, of: Person) =>
        by.browser.call('PUT', `${base}/users/${of.userId}`, { role: 'member' })
      await Promise.all([demote(ada, grace), demote(grace, ada)])
      const owners = await query(
        gateway(),
        `SELECT user_id FROM memberships WHERE organization_id = $1 AND role = 'owner' AND disabled_at IS NULL`,
        [organizationId],
      )
      expect(owners).toHaveLength(1)
      const last = [ada, grace].find(({ userId }) => userId === owners[0]?.user_id) as Person
      expect((await last.browser.call('DELETE', `${base}/users/${last.userId}`)).status).toBe(422)
      expect((await last.browser.call('GET', '/me')).status).toBe(200)
    }
  })
})

describe('an organization', () => {
  it('has limits that administrators change, a name that owners change, and the rest for the token', async () => {
    const [owner, admin] = await Promise.all([person('owner'), person('admin')])
    const limits = { rate_limit_per_minute: 100_000, user_rate_limit_per_minute: 100_000 }
    expect(await statusOf(admin, 'PUT', '', limits)).toBe(200)
    expect(await statusOf(admin, 'PUT', '', { name: 'Mine' })).toBe(403)
    expect(await statusOf(owner, 'PUT', '', { name: 'Ours' })).toBe(200)
    for (const change of [{ disabled: true }, { ledger_shards: 2 }]) {
      expect(await statusOf(owner, 'PUT', '', change)).toBe(403)
    }
  })
})

describe('a group that the tool settings name', () => {
  it('cannot be removed, so that its members keep to them', async () => {
    const { ask, call } = administrator(gateway())
    const { id } = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'without a shell' })
    const path = `${tenant.base}/groups/${id}`
    const settings = { off: [{ subject_type: 'group', subject_id: id, tools: ['shell'] }] }
    await ask('PUT', `${tenant.base}/tools`, settings)
    const refused = await call('DELETE', path)
    expect(refused.status, refused.text).toBe(422)
    await ask('PUT', `${tenant.base}/tools`, { off: [] })
    expect((await call('DELETE', path)).status).toBe(200)
  })
})
