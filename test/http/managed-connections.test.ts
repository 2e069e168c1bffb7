import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createConnection,
  createUnreadIntegration,
  grantPersonalAccess,
  type ManagedConnection,
} from '../harness/connections.ts'
import { followConnectLink, type OAuthWorker, startOAuthWorker } from '../harness/oauth-worker.ts'
import { auditEntries } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'

type Json = Record<string, unknown>

const UNKNOWN = '00000000-0000-4000-8000-00000000000a'

let oauth: OAuthWorker
beforeAll(async () => {
  oauth = await startOAuthWorker(3)
})
afterAll(() => oauth?.stop())

interface World {
  tenant: Tenant
  /** Owned by the tenant's user. */
  connection: ManagedConnection
  groupId: string
  /** A member of the group. */
  member: { id: string; key: string }
  /** A user of the organization, in no group. */
  stranger: { id: string; key: string }
}

/** A connection that is shared with a group, unless the permission is null. */
async function createWorld(
  permission: string | null,
  { authorization = { kind: 'bearer' } as Json, url = 'https://mcp.example.com/mcp' } = {},
): Promise<World> {
  const { worker } = oauth
  const { ask } = administrator(worker)
  const tenant = await createTenant(worker, { credits: 0, models: [] })
  await grantPersonalAccess(worker, tenant)
  const slug = await createUnreadIntegration(worker, tenant, { url, authorization })
  const own = { user_id: tenant.userId, ...(authorization.kind === 'oauth' && { credential: undefined }) }
  const connection = await createConnection(worker, tenant, slug, own)
  const { id: groupId } = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'team' })
  const [member, stranger] = await Promise.all([personOf(tenant), personOf(tenant)])
  await ask('PUT', `${tenant.base}/groups/${groupId}/members/${member.id}`)
  if (permission !== null) {
    await ask('PUT', `${tenant.base}/connections/${connection.id}/shares/${groupId}`, { permission })
  }
  return { tenant, connection, groupId, member, stranger }
}

async function personOf(tenant: Tenant): Promise<{ id: string; key: string }> {
  const id = await addMember(oauth.worker, tenant.base)
  await grantPersonalAccess(oauth.worker, tenant, id)
  return { id, key: (await addKey(oauth.worker, tenant.base, id)).key }
}

async function request(key: string, method: string, path: string, body?: unknown) {
  const answer = await send(`${oauth.worker.baseUrl}/v1/integrations/connections/${path}`, {
    method,
    headers: bearer(key),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: jsonOf(answer) }
}

const everyChange = (id: string, groupId: string): Array<[method: string, path: string, body?: unknown]> => [
  ['POST', `${id}/connect`],
  ['PUT', `${id}/shares/${groupId}`, { permission: 'manage' }],
  ['DELETE', `${id}/shares/${groupId}`],
  ['DELETE', id],
]

describe.concurrent('a connection', () => {
  it('that is shared to be used is managed by nobody but its owner', async () => {
    const { tenant, connection, groupId, member, stranger } = await createWorld('use')
    const other = await createTenant(oauth.worker, { credits: 0, models: [] })
    await grantPersonalAccess(oauth.worker, other)
    for (const [method, path, body] of everyChange(connection.id, groupId)) {
      const refused = await request(member.key, method, path, body)
      expect([method, path, refused]).toEqual([
        method,
        path,
        { status: 403, body: { error: 'Forbidden', message: expect.stringContaining('not manage') } },
      ])
      for (const { key } of [stranger, other]) {
        expect((await request(key, method, path, body)).status).toBe(404)
      }
    }
    const path = `${tenant.base}/connections/${connection.id}`
    const { shares } = await administrator(oauth.worker).ask<ManagedConnection>('GET', path)
    expect(shares).toEqual([{ group_id: groupId, permission: 'use' }])
  })

  it('is shared and disconnected by its owner', async () => {
    const { tenant, connection, groupId } = await createWorld(null)
    const share = `${connection.id}/shares/${groupId}`
    // Only with a group of the caller.
    expect((await request(tenant.key, 'PUT', share, {})).status).toBe(404)
    const { ask } = administrator(oauth.worker)
    await ask('PUT', `${tenant.base}/groups/${groupId}/members/${tenant.userId}`)
    expect(await request(tenant.key, 'PUT', share, { permission: 'manage' })).toEqual({
      status: 200,
      body: { id: connection.id, shares: [{ group_id: groupId, permission: 'manage' }] },
    })
    expect((await request(tenant.key, 'PUT', share, { permission: 'all' })).status).toBe(400)
    expect((await request(tenant.key, 'DELETE', `${connection.id}/shares/x`)).status).toBe(404)
    expect((await request(tenant.key, 'DELETE', `${connection.id}/shares/${UNKNOWN}`)).status).toBe(404)
    expect((await request(tenant.key, 'DELETE', share)).body).toEqual({ id: connection.id, shares: [] })
    expect(await request(tenant.key, 'DELETE', connection.id)).toEqual({
      status: 200,
      body: { id: connection.id, deleted: true, left_at_broker: null },
    })
    expect((await request(tenant.key, 'DELETE', connection.id)).status).toBe(404)
  })

  it('that a group manages is shared and disconnected by its members', async () => {
    const { tenant, connection, groupId, member, stranger } = await createWorld('manage')
    const { ask } = administrator(oauth.worker)
    const { id: second } = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'second' })
    const share = `${connection.id}/shares/${second}`
    expect((await request(member.key, 'PUT', share, {})).status).toBe(404)
    for (const { id } of [member, stranger]) await ask('PUT', `${tenant.base}/groups/${second}/members/${id}`)
    expect((await request(member.key, 'PUT', share, {})).status).toBe(200)
    expect((await request(stranger.key, 'DELETE', connection.id)).status).toBe(403)
    // A right that is given up is gone.
    expect((await request(member.key, 'PUT', `${connection.id}/shares/${groupId}`, {})).status).toBe(200)
    expect((await request(member.key, 'DELETE', connection.id)).status).toBe(403)
    await ask('PUT', `${tenant.base}/connections/${share}`, { permission: 'manage' })
    expect((await request(stranger.key, 'DELETE', connection.id)).status).toBe(200)
    const changes = (await auditEntries(oauth.worker, tenant)).map(({ action, user_id }) => [action, user_id])
    expect(changes).toContainEqual(['connection.shared', member.id])
    expect(changes).toContainEqual(['connection.deleted', stranger.id])
  })

  it('that a group manages is connected again by a member, with the account of its choice', async () => {
    const server = oauth.newServer()
    const world = await createWorld('manage', { url: server.resource, authorization: { kind: 'oauth' } })
    const { tenant, connection, member, stranger } = world
    const { ask, call } = administrator(oauth.worker)
    const path = `${tenant.base}/connections/${connection.id}`
    const started = await request(member.key, 'POST', `${connection.id}/connect`)
    expect(started).toMatchObject({ status: 201, body: { expires_at: expect.any(String) } })
    expect((await followConnectLink(String(started.body.url))).status).toBe(200)
    expect(await ask('GET', path)).toMatchObject({ status: 'active', user_id: tenant.userId })
    // An administrator names who connects it, by the same rule.
    expect((await call('POST', `${path}/connect`, { user_id: member.id })).status).toBe(201)
    expect((await call('POST', `${path}/connect`, { user_id: stranger.id })).status).toBe(422)
    await ask('PUT', path, { status: 'revoked' })
    const revoked = await request(member.key, 'POST', `${connection.id}/connect`)
    expect([revoked.status, revoked.body.message]).toEqual([422, expect.stringContaining('revoked')])
  })

  it('is not connected by a member that lost the right meanwhile', async () => {
    const server = oauth.newServer()
    const world = await createWorld('manage', { url: server.resource, authorization: { kind: 'oauth' } })
    const { tenant, connection, groupId, member } = world
    const { ask } = administrator(oauth.worker)
    const started = await request(member.key, 'POST', `${connection.id}/connect`)
    await ask('DELETE', `${tenant.base}/groups/${groupId}/members/${member.id}`)
    expect((await followConnectLink(String(started.body.url))).status).toBe(400)
    expect(await ask('GET', `${tenant.base}/connections/${connection.id}`)).toMatchObject({
      status: 'pending',
      connect: { failure: 'not_stored' },
    })
  })

  it('is changed by no key without the entitlement or the scope', async () => {
    const { tenant, connection } = await createWorld('manage')
    const { worker } = oauth
    const { key } = await addKey(worker, tenant.base, await addMember(worker, tenant.base))
    expect((await request(key, 'DELETE', connection.id)).status).toBe(403)
    const scoped = await addKey(worker, tenant.base, tenant.userId, { scopes: ['models'] })
    expect((await request(scoped.key, 'DELETE', connection.id)).status).toBe(403)
  })
})
