import { beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'

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
      400,
    )
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

describe('rights of members', () => {
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
