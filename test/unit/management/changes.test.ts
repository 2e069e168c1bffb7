import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { organizations } from '../../../schema/identity.ts'
import { deploymentEpochs } from '../../../schema/models.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../../src/ledger/audit-record.ts'
import {
  create,
  dumpDatabase,
  type Harness,
  type Organization,
  seedOrganization,
  someModel,
  somePolicy,
  someProvider,
  startManagement,
  uniqueName,
} from './harness.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startManagement()
}, 60_000)
afterEach(() => {
  harness.redisForwarder.behaviour = 'forward'
  harness.redisForwarder.cutStalled()
  harness.ledgers.deaf = false
  harness.postgresForwarder.behaviour = 'forward'
  harness.ledgers.away = false
  harness.ledgers.onChange = () => {}
})
afterAll(() => harness.close())

interface Change {
  name: string
  method: string
  path: (tenant: Organization) => string
  body?: (tenant: Organization) => unknown
  /** Action of its audit record. */
  action: string
  /** Whether the change alters a user's rights. */
  rights: boolean
}

const member = ({ base, user }: Organization) => `${base}/users/${user.id}`
const groupMember = ({ base, group, user }: Organization) => `${base}/groups/${group.id}/members/${user.id}`
const entitlement = (tenant: Organization) => `${member(tenant)}/entitlements/personal_api_key_access`

const policyOf = ({ base, policy }: Organization) => `${base}/dlp/policies/${policy.id}`
const CUSTOM = [{ category: 'custom', action: 'block' }]

const change = (
  name: string,
  action: string,
  rights: boolean,
  rest: Omit<Change, 'name' | 'action' | 'rights'>,
) => ({
  name,
  action,
  rights,
  ...rest,
})

const changes: Change[] = [
  change('limits of an organization', 'organization.updated', true, {
    method: 'PUT',
    path: ({ base }) => base,
    body: () => ({ rate_limit_per_minute: 10, user_rate_limit_per_minute: null }),
  }),
  change('a disabled organization', 'organization.updated', true, {
    method: 'PUT',
    path: ({ base }) => base,
    body: () => ({ disabled: true }),
  }),
  change('a new user', 'user.created', false, {
    method: 'POST',
    path: ({ base }) => `${base}/users`,
    body: () => ({ email: `${uniqueName('new')}@example.com`, name: 'New Person' }),
  }),
  change("a user's role", 'user.updated', true, {
    method: 'PUT',
    path: member,
    body: () => ({ role: 'admin' }),
  }),
  change("a user's limit", 'user.updated', true, {
    method: 'PUT',
    path: member,
    body: () => ({ rate_limit_per_minute: 5 }),
  }),
  change('a user disabled by PUT', 'user.disabled', true, {
    method: 'PUT',
    path: member,
    body: () => ({ disabled: true }),
  }),
  change('a user disabled by DELETE', 'user.disabled', true, { method: 'DELETE', path: member }),
  change('an entitlement given', 'entitlement.granted', true, { method: 'PUT', path: entitlement }),
  change('an entitlement taken', 'entitlement.revoked', true, { method: 'DELETE', path: entitlement }),
  change('a new group', 'group.created', false, {
    method: 'POST',
    path: ({ base }) => `${base}/groups`,
    body: () => ({ name: uniqueName('group') }),
  }),
  change('a deleted group', 'group.deleted', true, {
    method: 'DELETE',
    path: ({ base, group }) => `${base}/groups/${group.id}`,
  }),
  change('a group member added', 'group_member.added', true, { method: 'PUT', path: groupMember }),
  change('a group member removed', 'group_member.removed', true, { method: 'DELETE', path: groupMember }),
  change('a new key', 'api_key.created', false, {
    method: 'POST',
    path: ({ base }) => `${base}/keys`,
    body: ({ user }) => ({ user_id: user.id, label: 'second' }),
  }),
  change('the form of responses to a key', 'api_key.updated', true, {
    method: 'PUT',
    path: ({ base, key }) => `${base}/keys/${key.id}`,
    body: () => ({ compatibility: 'open_responses' }),
  }),
  change('a revoked key', 'api_key.revoked', true, {
    method: 'DELETE',
    path: ({ base, key }) => `${base}/keys/${key.id}`,
  }),
  change('a new grant', 'grant.created', true, {
    method: 'POST',
    path: ({ base }) => `${base}/grants`,
    body: () => ({ subject_type: 'role', subject_id: 'owner', model_id: '*' }),
  }),
  change('a deleted grant', 'grant.deleted', true, {
    method: 'DELETE',
    path: ({ base, grant }) => `${base}/grants/${grant.id}`,
  }),
  change('a new policy', 'dlp_policy.created', true, {
    method: 'POST',
    path: ({ base }) => `${base}/dlp/policies`,
    body: () => somePolicy({ dictionaries: [{ id: 'x', terms: ['a@example.com'] }], rules: CUSTOM }),
  }),
  change("a policy's rules", 'dlp_policy.updated', true, {
    method: 'PUT',
    path: policyOf,
    body: () => ({ version: 1, rules: [{ detector: 'email', action: 'block' }] }),
  }),
  change('an enabled policy', 'dlp_policy.updated', true, {
    method: 'PUT',
    path: policyOf,
    body: () => ({ version: 1, enabled: true }),
  }),
  change('a deleted policy', 'dlp_policy.deleted', true, { method: 'DELETE', path: policyOf }),
]

const make = (one: Change, tenant: Organization) =>
  harness.request(one.method, one.path(tenant), one.body?.(tenant))

async function epochOf(tenant: Organization): Promise<number> {
  const [row] = await harness.database
    .select({ epoch: organizations.epoch })
    .from(organizations)
    .where(eq(organizations.id, tenant.organization.id))
  return row?.epoch ?? 0
}

const published = (tenant: Organization) => harness.ledgers.epochs.get(tenant.organization.id)
const recorded = (tenant: Organization) =>
  harness.ledgers.changes.filter(({ organizationId }) => organizationId === tenant.organization.id)

describe('a change', () => {
  it.each(changes)(
    '$name: is not made without its audit record, and is recorded before it is made',
    async (one) => {
      const tenant = await seedOrganization(harness)
      const [epoch, before] = [await epochOf(tenant), recorded(tenant).length]
      const state = await dumpDatabase(harness.database)
      harness.ledgers.away = true
      expect(await make(one, tenant)).toMatchObject({
        status: 500,
        json: { message: 'The audit record could not be stored, so nothing was changed.' },
      })
      harness.ledgers.away = false

      // Neither the refused attempt nor this one has changed anything yet.
      harness.ledgers.onChange = async () => expect(await dumpDatabase(harness.database)).toBe(state)
      const answer = await make(one, tenant)
      expect(answer.status).toBeLessThan(300)
      expectRecord(one, tenant, recorded(tenant).slice(before))
      expect(answer.headers.get('x-headgate-propagation')).toBeNull()
      const raised = epoch + (one.rights ? 1 : 0)
      expect(await epochOf(tenant)).toBe(raised)
      expect(published(tenant)).toBe(raised)
    },
  )

  function expectRecord(one: Change, tenant: Organization, records: unknown[]): void {
    expect(records).toEqual([
      {
        id: expect.stringMatching(/^change_/),
        requestId: expect.stringMatching(/^req_/),
        organizationId: tenant.organization.id,
        at: expect.any(Number),
        actor: { userId: null, keyId: null, administrator: 'admin_token', ip: null },
        action: one.action,
        resource: expect.stringMatching(/^[a-z]+\/[\w-]+$/),
        detail: expect.any(Object),
      },
    ])
    expect(JSON.stringify(recorded(tenant))).not.toMatch(/example\.com|Person|hg_/)
  }
})

describe('a change of rights', () => {
  it('stands when the ledger cannot be told, and says that it will be late', async () => {
    const tenant = await seedOrganization(harness)
    const before = await epochOf(tenant)
    harness.ledgers.deaf = true
    const answer = await harness.request('DELETE', `${tenant.base}/keys/${tenant.key.id}`)
    expect(answer).toMatchObject({ status: 200, json: { revoked_at: expect.any(String) } })
    expect(answer.headers.get('x-headgate-propagation')).toBe('delayed')
    expect(await epochOf(tenant)).toBe(before + 1)
  })

  it('is made all the same while Redis is away', async () => {
    for (const behaviour of [{ status: 500, body: 'down' }, 'stall'] as const) {
      const tenant = await seedOrganization(harness)
      harness.redisForwarder.behaviour = behaviour
      const answer = await harness.request('DELETE', `${tenant.base}/keys/${tenant.key.id}`)
      expect(answer).toMatchObject({ status: 200, json: { revoked_at: expect.any(String) } })
      expect(answer.headers.get('x-headgate-propagation')).toBeNull()
      harness.redisForwarder.behaviour = 'forward'
      harness.redisForwarder.cutStalled()
      harness.ledgers.deaf = false
    }
  })

  it('can be repeated to tell the ledger after all', async () => {
    const tenant = await seedOrganization(harness)
    harness.ledgers.deaf = true
    const first = await harness.request('DELETE', `${tenant.base}/keys/${tenant.key.id}`)
    harness.ledgers.deaf = false
    const second = await harness.request('DELETE', `${tenant.base}/keys/${tenant.key.id}`)
    expect(second.json.revoked_at).toBe(first.json.revoked_at)
    expect(second.headers.get('x-headgate-propagation')).toBeNull()
    expect(published(tenant)).toBe(await epochOf(tenant))
  })

  it('raises the epoch once for each of many at the same time', async () => {
    const tenant = await seedOrganization(harness)
    const before = await epochOf(tenant)
    const limits = Array.from({ length: 8 }, (_, index) => ({ rate_limit_per_minute: index + 1 }))
    await Promise.all(limits.map((body) => harness.request('PUT', member(tenant), body)))
    expect(await epochOf(tenant)).toBe(before + 8)
    expect(published(tenant)).toBe(before + 8)
  })
})

describe('a change of the catalogue', () => {
  const epochs = async () => {
    const query = harness.database.select().from(deploymentEpochs)
    const [row] = await query.where(eq(deploymentEpochs.name, 'catalogue'))
    return row?.epoch ?? 0
  }

  it('raises its epoch, tells the ledgers and is audited under the deployment', async () => {
    const steps: Array<[method: string, path: () => string, body: () => unknown, action: string]> = [
      ['POST', () => '/providers', () => someProvider(), 'provider.created'],
      ['PUT', () => `/providers/${id}`, () => ({ credential: 'another' }), 'provider.updated'],
      ['PUT', () => '/models/meta/llama-9', () => someModel(id), 'model.created'],
      ['PUT', () => '/models/meta/llama-9', () => someModel(id), 'model.updated'],
      ['DELETE', () => '/models/meta/llama-9', () => undefined, 'model.disabled'],
      ['DELETE', () => `/providers/${id}`, () => undefined, 'provider.disabled'],
    ]
    let id = ''
    for (const [method, path, body, action] of steps) {
      const before = await epochs()
      const answer = await harness.request(method, path(), body())
      expect(answer.status, action).toBeLessThan(300)
      expect(await epochs(), action).toBeGreaterThan(before)
      expect(harness.ledgers.epochs.get(DEPLOYMENT_ORGANIZATION_ID)).toBe(await epochs())
      expect(harness.ledgers.changes.at(-1)).toMatchObject({
        action,
        organizationId: DEPLOYMENT_ORGANIZATION_ID,
      })
      if (id === '') id = answer.json.id
    }
  })

  it('stands when not every ledger can be told', async () => {
    harness.ledgers.deaf = true
    const answer = await harness.request('POST', '/providers', someProvider())
    expect(answer.status).toBe(201)
    expect(answer.headers.get('x-headgate-propagation')).toBe('delayed')
  })
})

describe('the audit record of a change', () => {
  it('is followed by another when the change did not happen', async () => {
    const tenant = await seedOrganization(harness)
    const answer = await harness.request('POST', `${tenant.base}/groups`, { name: tenant.group.name })
    expect(answer.status).toBe(422)
    const [intent, failure] = recorded(tenant).slice(-2)
    expect(intent).toMatchObject({ action: 'group.created' })
    expect(failure).toMatchObject({
      action: 'change.failed',
      resource: intent?.resource,
      detail: { change_id: intent?.id, action: 'group.created', outcome: 'refused' },
    })
  })

  it('says so when nobody knows whether the change happened', async () => {
    const tenant = await seedOrganization(harness)
    harness.ledgers.onChange = () => {
      harness.postgresForwarder.behaviour = { status: 502, body: 'bad gateway' }
    }
    const answer = await harness.request('DELETE', `${tenant.base}/keys/${tenant.key.id}`)
    expect(answer).toMatchObject({ status: 500, json: { message: expect.stringContaining('may stand') } })
    expect(recorded(tenant).at(-1)).toMatchObject({ action: 'change.failed', detail: { outcome: 'unknown' } })
  })

  it('names the network of the address that the administrator called from', async () => {
    const tenant = await seedOrganization(harness)
    const headers = { 'cf-connecting-ip': '192.0.2.7' }
    await harness.request('PUT', tenant.base, { name: 'New' }, headers)
    expect(recorded(tenant).at(-1)?.actor.ip).toBe('192.0.2.0')
  })

  it('takes for an address only what is one', async () => {
    const tenant = await seedOrganization(harness)
    await harness.request('PUT', tenant.base, { name: 'New' }, { 'cf-connecting-ip': 'x'.repeat(1_000) })
    expect(recorded(tenant).at(-1)?.actor.ip).toBeNull()
  })
})

describe('a deleted group', () => {
  it('takes its memberships and grants along', async () => {
    const tenant = await seedOrganization(harness)
    const { base, group, user } = tenant
    const grant = { subject_type: 'group', subject_id: group.id, model_id: '*' }
    await create(harness, `${base}/grants`, grant)
    await harness.request('DELETE', `${base}/groups/${group.id}`)
    expect((await harness.request('GET', `${base}/groups/${group.id}`)).status).toBe(404)
    expect((await harness.request('GET', `${base}/users/${user.id}`)).json.group_ids).toEqual([])
    const left = (await harness.request('GET', `${base}/grants`)).json.data
    expect(left).toMatchObject([{ id: tenant.grant.id }])
  })
})

describe('disabling and enabling', () => {
  it('keeps the first time of disabling, and clears it', async () => {
    const tenant = await seedOrganization(harness)
    const first = await harness.request('DELETE', member(tenant))
    const second = await harness.request('DELETE', member(tenant))
    expect(first.json.disabled_at).toEqual(expect.any(String))
    expect(second.json.disabled_at).toBe(first.json.disabled_at)
    expect((await harness.request('PUT', member(tenant), { disabled: false })).json.disabled_at).toBeNull()
  })

  it('members left out of an update keep their value', async () => {
    const tenant = await seedOrganization(harness)
    await harness.request('PUT', member(tenant), { role: 'owner', rate_limit_per_minute: 7 })
    const answer = await harness.request('PUT', member(tenant), { name: 'Renamed' })
    expect(answer.json).toMatchObject({ role: 'owner', rate_limit_per_minute: 7, name: 'Renamed' })
    const cleared = await harness.request('PUT', member(tenant), { rate_limit_per_minute: null })
    expect(cleared.json).toMatchObject({ role: 'owner', rate_limit_per_minute: null })
  })
})
