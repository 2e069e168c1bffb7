import { beforeAll, describe, expect, it } from 'vitest'
import {
  createConnection,
  createUnreadIntegration,
  grantPersonalAccess,
  type ManagedConnection,
} from '../harness/connections.ts'
import { gateway, query } from '../harness/gateway.ts'
import { jsonOf, send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'

const CONNECTIONS = '/v1/integrations/connections'

/** A tenant with the entitlement, and an integration that takes a bearer token. */
async function createWorld() {
  const address = gateway()
  const tenant = await createTenant(address, { credits: 0, models: [] })
  await grantPersonalAccess(address, tenant)
  return { tenant, slug: await createUnreadIntegration(address, tenant) }
}

const list = async (key: string) => {
  const answer = await send(`${gateway().baseUrl}${CONNECTIONS}`, { headers: bearer(key) })
  expect(answer.status).toBe(200)
  return jsonOf(answer).data as Array<Record<string, unknown>>
}

const setDefault = (key: string, slug: string, body: unknown) =>
  send(`${gateway().baseUrl}${CONNECTIONS}/${slug}/default`, {
    method: 'POST',
    headers: bearer(key),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

const ids = (items: Array<Record<string, unknown>>) => items.map(({ id }) => id)

describe.concurrent('the list of connections', () => {
  it('has those of the key holder, of its groups and of the organization, in the shape of the interface', async () => {
    const { tenant, slug } = await createWorld()
    const [address, { ask }] = [gateway(), administrator(gateway())]
    const other = await addMember(address, tenant.base)
    const own = await createConnection(address, tenant, slug, { user_id: tenant.userId, display_name: 'Own' })
    const shared = await createConnection(address, tenant, slug, { user_id: other, display_name: 'Shared' })
    const foreign = await createConnection(address, tenant, slug, { user_id: other })
    const common = await createConnection(address, tenant, slug, { display_name: 'Common' })
    const group = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'team' })
    await ask('PUT', `${tenant.base}/groups/${group.id}/members/${tenant.userId}`)
    await ask('PUT', `${tenant.base}/connections/${shared.id}/shares/${group.id}`, { permission: 'use' })

    const data = await list(tenant.key)

    expect(ids(data)).toEqual([own.id, shared.id, common.id])
    expect(ids(data)).not.toContain(foreign.id)
    expect(data[0]).toEqual({
      id: own.id,
      display_name: 'Own',
      integration_config_id: slug,
      upstream_connection_id: expect.stringMatching(/^local_[0-9a-f-]{36}$/),
      is_preferred: true,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
    expect(data.map(({ is_preferred }) => is_preferred)).toEqual([true, false, false])
  })

  it('loses connections that are no longer shared, were removed from a group or were revoked', async () => {
    const { tenant, slug } = await createWorld()
    const [address, { ask }] = [gateway(), administrator(gateway())]
    const other = await addMember(address, tenant.base)
    const [first, second, third] = await Promise.all(
      [1, 2, 3].map(() => createConnection(address, tenant, slug, { user_id: other })),
    )
    const group = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'team' })
    await ask('PUT', `${tenant.base}/groups/${group.id}/members/${tenant.userId}`)
    for (const each of [first, second, third]) {
      await ask('PUT', `${tenant.base}/connections/${each?.id}/shares/${group.id}`, {})
    }
    expect(ids(await list(tenant.key)).toSorted()).toEqual([first?.id, second?.id, third?.id].toSorted())

    await ask('DELETE', `${tenant.base}/connections/${first?.id}/shares/${group.id}`)
    expect(ids(await list(tenant.key)).toSorted()).toEqual([second?.id, third?.id].toSorted())
    await ask('PUT', `${tenant.base}/connections/${second?.id}`, { status: 'revoked' })
    expect(ids(await list(tenant.key))).toEqual([third?.id])
    await ask('DELETE', `${tenant.base}/groups/${group.id}/members/${tenant.userId}`)
    expect(await list(tenant.key)).toEqual([])
  })
})

describe.concurrent('who may use these paths', () => {
  it('refuses a user without the entitlement, and a key without the scope, with 403', async () => {
    const { tenant, slug } = await createWorld()
    const address = gateway()
    const without = await addKey(address, tenant.base, await addMember(address, tenant.base))
    const narrow = await addKey(address, tenant.base, tenant.userId, { scopes: ['models'] })
    for (const { key } of [without, narrow]) {
      const listed = await send(`${address.baseUrl}${CONNECTIONS}`, { headers: bearer(key) })
      expect([listed.status, jsonOf(listed)]).toEqual([
        403,
        { error: 'Forbidden', message: expect.any(String) },
      ])
      expect((await setDefault(key, slug, { connection_id: 'conn_1' })).status).toBe(403)
    }
  })
})

describe.concurrent('the default-setter', () => {
  const refused = (status: number, label: string) => [status, { error: label, message: expect.any(String) }]

  it('replaces the whole active set', async () => {
    const { tenant, slug } = await createWorld()
    const address = gateway()
    const own = await Promise.all(
      [1, 2].map(() => createConnection(address, tenant, slug, { user_id: tenant.userId })),
    )
    const common = await createConnection(address, tenant, slug)
    expect((await list(tenant.key)).filter(({ is_preferred }) => is_preferred)).toHaveLength(2)

    const answer = await setDefault(tenant.key, slug, { connection_id: common.id })

    expect([answer.status, jsonOf(answer)]).toEqual([
      200,
      { integration_config_id: slug, connection_id: common.id },
    ])
    const preferred = (await list(tenant.key)).filter(({ is_preferred }) => is_preferred)
    expect(ids(preferred)).toEqual([common.id])
    const again = await setDefault(tenant.key, slug, { connection_id: own[0]?.id })
    expect(again.status).toBe(200)
    const after = (await list(tenant.key)).filter(({ is_preferred }) => is_preferred)
    expect(ids(after)).toEqual([own[0]?.id])
  })

  it('answers 400 for a body without the id, or with one of another integration', async () => {
    const { tenant, slug } = await createWorld()
    const address = gateway()
    const other = await createUnreadIntegration(address, tenant)
    const connection = await createConnection(address, tenant, slug)
    for (const body of [{}, { connection_id: 5 }, { connection_id: '' }, '[]', '{']) {
      const answer = await setDefault(tenant.key, slug, body)
      expect([answer.status, jsonOf(answer).error]).toEqual([400, 'Bad Request'])
    }
    for (const wrong of [other, 'no-such-integration']) {
      const answer = await setDefault(tenant.key, wrong, { connection_id: connection.id })
      expect([answer.status, jsonOf(answer)]).toEqual(refused(400, 'Bad Request'))
    }
  })

  it('answers 404 for a text that is no id, which the database could not be asked for', async () => {
    const { tenant, slug } = await createWorld()
    for (const connection_id of ['a\u0000b', 'conn_\u0000', 'conn_', 'x'.repeat(200)]) {
      const answer = await setDefault(tenant.key, slug, { connection_id })
      expect([answer.status, jsonOf(answer).error]).toEqual([404, 'Not found'])
    }
  })

  it('answers 404 for connections that do not exist, are not visible, or belong to another organization', async () => {
    const { tenant, slug } = await createWorld()
    const [address, stranger] = [gateway(), await createWorld()]
    const member = await addMember(address, tenant.base)
    const invisible = [
      'conn_none',
      (await createConnection(address, tenant, slug, { user_id: member })).id,
      (await createConnection(address, stranger.tenant, stranger.slug)).id,
    ]
    for (const id of invisible) {
      for (const integration of [slug, stranger.slug]) {
        const answer = await setDefault(tenant.key, integration, { connection_id: id })
        expect([answer.status, jsonOf(answer)]).toEqual(refused(404, 'Not found'))
      }
    }
  })

  it('answers 403 for a visible connection that may not be used, or must be connected again', async () => {
    const { tenant, slug } = await createWorld()
    const address = gateway()
    const denied = await createUnreadIntegration(address, tenant, { granted: false })
    const connection = await createConnection(address, tenant, denied)
    const forbidden = await setDefault(tenant.key, denied, { connection_id: connection.id })
    expect([forbidden.status, jsonOf(forbidden)]).toEqual(refused(403, 'Forbidden'))
    const expired = await createConnection(address, tenant, slug)
    await administrator(address).ask('PUT', `${tenant.base}/connections/${expired.id}`, {
      status: 'needs_reauth',
    })
    const answer = await setDefault(tenant.key, slug, { connection_id: expired.id })
    expect([answer.status, jsonOf(answer)]).toEqual(refused(403, 'Forbidden'))
  })
})

describe.concurrent('administration of connections', () => {
  const path = (tenant: Tenant, { id }: Pick<ManagedConnection, 'id'>) => `${tenant.base}/connections/${id}`

  it('never returns a secret, and stores it sealed', async () => {
    const { tenant, slug } = await createWorld()
    const address = gateway()
    const secret = `secret-${crypto.randomUUID()}`
    const made = await createConnection(address, tenant, slug, { credential: { secret } })
    expect(made).toMatchObject({ status: 'active', hint: secret.slice(-4), user_id: null, shares: [] })
    const rows = await query(address, 'select * from connections where id = $1', [made.id])
    const { ask } = administrator(address)
    const texts = [
      made,
      await ask('GET', path(tenant, made)),
      await ask('GET', `${tenant.base}/connections`),
      rows,
    ]
    for (const text of texts) expect(JSON.stringify(text)).not.toContain(secret)
    expect(rows[0]).toMatchObject({
      vault_key_id: expect.any(String),
      sealed_credential: expect.stringMatching(/^e1:v1\./),
    })
  })

  it('refuses a credential of another kind than the integration takes, without quoting it', async () => {
    const { tenant, slug } = await createWorld()
    const address = gateway()
    const { call } = administrator(address)
    const create = (integration: string, more: object) =>
      call('POST', `${tenant.base}/connections`, { integration, display_name: 'Account', ...more })
    const basic = await createUnreadIntegration(address, tenant, { authorization: { kind: 'basic' } })
    const oauth = await createUnreadIntegration(address, tenant, { authorization: { kind: 'oauth' } })
    const none = await createUnreadIntegration(address, tenant, { authorization: { kind: 'none' } })
    const cases: Array<[string, object, number]> = [
      [slug, {}, 422],
      [slug, { credential: { username: 'anna', password: 'hunter2-secret' } }, 422],
      [slug, { credential: { secret: 'hunter2-secret\nx-injected: 1' } }, 400],
      [slug, { credential: { secret: 'hunter2-secret', more: 1 } }, 400],
      [basic, { credential: { secret: 'hunter2-secret' } }, 422],
      [basic, { credential: { username: 'an:na', password: 'hunter2-secret' } }, 400],
      [oauth, { credential: { secret: 'hunter2-secret' } }, 422],
      [none, { credential: { secret: 'hunter2-secret' } }, 422],
      ['no-such-one', { credential: { secret: 'hunter2-secret' } }, 404],
    ]
    for (const [integration, more, status] of cases) {
      const answer = await create(integration, more)
      expect([answer.status, answer.text]).toEqual([status, expect.not.stringContaining('hunter2')])
    }
    const login = { credential: { username: 'anna', password: 'hunter2-secret' } }
    expect(jsonOf(await create(basic, login))).toMatchObject({ status: 'active', hint: null })
    expect(jsonOf(await create(oauth, {}))).toMatchObject({ status: 'pending', hint: null })
  })

  it('erases the credential of a revoked connection, which a new credential makes active again', async () => {
    const { tenant, slug } = await createWorld()
    const [address, { ask, call }] = [gateway(), administrator(gateway())]
    const made = await createConnection(address, tenant, slug)
    expect(await ask('PUT', path(tenant, made), { status: 'revoked' })).toMatchObject({
      status: 'revoked',
      hint: null,
    })
    const [row] = await query(address, 'select sealed_credential from connections where id = $1', [made.id])
    expect(row).toEqual({ sealed_credential: null })
    expect((await call('PUT', path(tenant, made), { status: 'active' })).status).toBe(422)
    const renewed = await ask('PUT', path(tenant, made), { credential: { secret: 'another-token-1234' } })
    expect(renewed).toMatchObject({ status: 'active', hint: '1234' })
  })

  it('finds nothing of another organization', async () => {
    const [{ tenant, slug }, stranger] = await Promise.all([createWorld(), createWorld()])
    const [address, { ask, call }] = [gateway(), administrator(gateway())]
    const foreign = await createConnection(address, stranger.tenant, stranger.slug)
    const group = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'team' })
    const foreignGroup = await ask<{ id: string }>('POST', `${stranger.tenant.base}/groups`, { name: 'team' })
    const own = await createConnection(address, tenant, slug)
    const calls: Array<[string, string, unknown?]> = [
      ['GET', path(tenant, foreign)],
      ['PUT', path(tenant, foreign), { display_name: 'Mine' }],
      ['DELETE', path(tenant, foreign)],
      ['PUT', `${path(tenant, foreign)}/shares/${group.id}`, {}],
      ['DELETE', `${path(tenant, foreign)}/shares/${group.id}`],
      ['PUT', `${path(tenant, own)}/shares/${foreignGroup.id}`, {}],
      ['PUT', path(tenant, own), { user_id: stranger.tenant.userId }],
      [
        'POST',
        `${tenant.base}/connections`,
        { integration: stranger.slug, display_name: 'x', credential: { secret: 'x' } },
      ],
      [
        'POST',
        `${tenant.base}/connections`,
        {
          integration: slug,
          user_id: stranger.tenant.userId,
          display_name: 'x',
          credential: { secret: 'x' },
        },
      ],
    ]
    for (const [method, where, body] of calls) {
      expect([method, where, (await call(method, where, body)).status]).toEqual([method, where, 404])
    }
    expect(await ask('GET', path(stranger.tenant, foreign))).toMatchObject({ id: foreign.id, shares: [] })
  })

  it('revokes private connections of a member that is disabled, and suspends those that are shared', async () => {
    const { tenant, slug } = await createWorld()
    const [address, { ask }] = [gateway(), administrator(gateway())]
    const leaver = await addMember(address, tenant.base)
    const [secret, shared] = await Promise.all(
      [1, 2].map(() => createConnection(address, tenant, slug, { user_id: leaver })),
    )
    const group = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'team' })
    await ask('PUT', `${tenant.base}/groups/${group.id}/members/${tenant.userId}`)
    await ask('PUT', `${tenant.base}/connections/${shared?.id}/shares/${group.id}`, {})
    expect(ids(await list(tenant.key))).toEqual([shared?.id])

    await ask('DELETE', `${tenant.base}/users/${leaver}`)

    expect(await list(tenant.key)).toEqual([])
    const at = (made?: ManagedConnection) => ask('GET', `${tenant.base}/connections/${made?.id}`)
    expect(await at(secret)).toMatchObject({ status: 'revoked', owner_disabled: true, hint: null })
    expect(await at(shared)).toMatchObject({ status: 'active', owner_disabled: true })
    await ask('PUT', `${tenant.base}/connections/${shared?.id}`, { user_id: null })
    expect(ids(await list(tenant.key))).toEqual([shared?.id])
  })
})

beforeAll(() => expect(gateway().baseUrl).toMatch(/^http/))
