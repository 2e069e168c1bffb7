import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ADMIN_TOKEN,
  dumpDatabase,
  type Harness,
  listRoutes,
  seedTenant,
  someAgent,
  somePolicy,
  startManagement,
  type Tenant,
} from './harness.ts'

let harness: Harness
let mine: Tenant
let theirs: Tenant

beforeAll(async () => {
  harness = await startManagement()
  mine = await seedTenant(harness)
  theirs = await seedTenant(harness)
}, 60_000)
afterAll(() => harness.close())

const routes = listRoutes()
const name = ({ method, path }: { method: string; path: string }) => `${method} ${path}`

/** Ids of a tenant by path parameter. Parameters that are no ids of a tenant are fixed. */
const identifiers: Record<string, (tenant: Tenant) => string> = {
  organizationId: (tenant) => tenant.organization.id,
  userId: (tenant) => tenant.user.id,
  groupId: (tenant) => tenant.group.id,
  keyId: (tenant) => tenant.key.id,
  grantId: (tenant) => tenant.grant.id,
  integrationId: (tenant) => tenant.integration.id,
  connectionId: (tenant) => tenant.connection.id,
  policyId: (tenant) => tenant.policy.id,
  agentId: (tenant) => tenant.agent.id,
  runId: (tenant) => tenant.run.id,
  callId: (tenant) => tenant.call.id,
  erasureId: (tenant) => tenant.erasure.id,
  trigger: () => 'hook',
  version: () => '1',
  entitlement: () => 'personal_api_key_access',
}

/** Bodies that pass validation, so that only ownership is left to refuse. */
const bodies: Record<string, (tenant: Tenant) => unknown> = {
  'PUT /organizations/:organizationId': () => ({ name: 'Changed' }),
  'PUT /organizations/:organizationId/retention': () => ({ runs: 90 }),
  'PUT /organizations/:organizationId/identity-provider': () => ({
    issuer: 'https://login.example.com',
    client_id: 'headgate',
  }),
  'POST /organizations/:organizationId/users': () => ({ email: 'new@example.com', name: 'New' }),
  'PUT /organizations/:organizationId/users/:userId': () => ({ role: 'admin' }),
  'PUT /organizations/:organizationId/tools': () => ({
    off: [{ subject_type: 'organization', tools: ['shell'] }],
  }),
  'POST /organizations/:organizationId/groups': () => ({ name: 'New' }),
  'POST /organizations/:organizationId/keys': (tenant) => ({ user_id: tenant.user.id, label: 'New' }),
  'PUT /organizations/:organizationId/keys/:keyId': () => ({ compatibility: 'open_responses' }),
  'POST /organizations/:organizationId/keys/:keyId/rotate': () => ({}),
  'POST /organizations/:organizationId/grants': () => ({ subject_type: 'organization', model_id: '*' }),
  'POST /organizations/:organizationId/integrations': () => ({
    kind: 'mcp',
    slug: 'new-service',
    url: 'https://mcp.example.com/mcp',
  }),
  'PUT /organizations/:organizationId/integrations/:integrationId': () => ({ display_name: 'Changed' }),
  'POST /organizations/:organizationId/integrations/:integrationId/refresh': () => ({}),
  'POST /organizations/:organizationId/integrations/:integrationId/tools/approve': () => ({}),
  'POST /organizations/:organizationId/integrations/:integrationId/tools/reject': () => ({}),
  'POST /organizations/:organizationId/integrations/:integrationId/tools/disable': () => ({ tools: ['x'] }),
  'POST /organizations/:organizationId/integrations/:integrationId/tools/enable': () => ({ tools: ['x'] }),
  'POST /organizations/:organizationId/integration-grants': () => ({
    subject_type: 'organization',
    integration: '*',
  }),
  'POST /organizations/:organizationId/connections': (tenant) => ({
    integration: tenant.integration.slug,
    display_name: 'New',
    credential: { secret: 'secret' },
  }),
  'PUT /organizations/:organizationId/connections/:connectionId': () => ({ display_name: 'Changed' }),
  'POST /organizations/:organizationId/connections/:connectionId/connect': () => ({}),
  'PUT /organizations/:organizationId/connections/:connectionId/shares/:groupId': () => ({}),
  'POST /organizations/:organizationId/credits': () => ({ amount: 1, reason: 'test' }),
  'POST /organizations/:organizationId/dlp/policies': () => somePolicy(),
  'PUT /organizations/:organizationId/dlp/policies/:policyId': () => ({ version: 1, enabled: true }),
  'POST /organizations/:organizationId/agents': (tenant) => someAgent(tenant.user.id),
  'PUT /organizations/:organizationId/agents/:agentId': (tenant) => ({
    version: 1,
    definition: someAgent(tenant.user.id).definition,
  }),
  'POST /organizations/:organizationId/dlp/test': (tenant) => ({ policy_id: tenant.policy.id, text: 'x' }),
  'POST /organizations/:organizationId/dlp/dry-run': (tenant) => ({
    policy_id: tenant.policy.id,
    samples: ['x'],
  }),
}

const parametersOf = (path: string) => [...path.matchAll(/:(\w+)/g)].map(([, parameter]) => parameter ?? '')

/** The path with ids of `own`, but for one parameter that is taken from `other`. */
function fill(path: string, own: Tenant, swapped: string, value: string): string {
  return path.replace(/:(\w+)/g, (_all, parameter: string) =>
    parameter === swapped ? value : (identifiers[parameter]?.(own) ?? '?'),
  )
}

const ofOrganizations = routes.filter(({ path }) => path.includes(':organizationId'))
const swaps = ofOrganizations.flatMap((route) =>
  parametersOf(route.path)
    .filter((parameter) => !['entitlement', 'version', 'trigger'].includes(parameter))
    .map((parameter) => ({ ...route, parameter })),
)

it('knows every parameter of every route', () => {
  expect(ofOrganizations.length).toBeGreaterThan(30)
  const known = Object.keys(identifiers)
  expect(ofOrganizations.flatMap(({ path }) => parametersOf(path)).filter((p) => !known.includes(p))).toEqual(
    [],
  )
})

it('has a body for every route that reads one', () => {
  const withBody = ofOrganizations.filter(
    ({ method, path }) =>
      ['POST', 'PUT'].includes(method) &&
      !/(flush|members\/:userId|entitlements\/:entitlement|setup-link|playground-keys|secret|cancel|rerun|erase)$/.test(
        path,
      ),
  )
  expect(withBody.map(name).sort()).toEqual(Object.keys(bodies).sort())
})

describe('an id of another organization', () => {
  const foreign = swaps.filter(({ parameter }) => parameter !== 'organizationId')
  let before: string
  beforeAll(async () => {
    before = await dumpDatabase(harness.database)
  })

  it.each(foreign)('$method $path: $parameter is 404 and changes nothing', async (route) => {
    const value = identifiers[route.parameter]?.(theirs) ?? '?'
    const body = bodies[name(route)]?.(mine)
    const answer = await harness.request(route.method, fill(route.path, mine, route.parameter, value), body)
    expect(answer).toMatchObject({ status: 404, json: { message: expect.stringMatching(/not found\.$/) } })
    expect(await dumpDatabase(harness.database)).toBe(before)
  })

  it('is unknown in a body, too', async () => {
    const key = await harness.request('POST', `${mine.base}/keys`, { user_id: theirs.user.id, label: 'x' })
    expect(key.status).toBe(404)
    for (const [type, id] of [
      ['user', theirs.user.id],
      ['group', theirs.group.id],
    ]) {
      const body = { subject_type: type, subject_id: id, model_id: '*' }
      expect((await harness.request('POST', `${mine.base}/grants`, body)).status).toBe(404)
      const policy = somePolicy({ scope: { [`${type}_ids`]: [id] } })
      expect((await harness.request('POST', `${mine.base}/dlp/policies`, policy)).status).toBe(400)
    }
    for (const [path, input] of [
      ['test', { text: 'x' }],
      ['dry-run', { samples: ['x'] }],
    ] as const) {
      const body = { policy_id: theirs.policy.id, ...input }
      expect((await harness.request('POST', `${mine.base}/dlp/${path}`, body)).status, path).toBe(404)
    }
  })
})

describe('an id of nothing', () => {
  const nothing = ['11111111-2222-4333-8444-555555555555', 'not-an-id', '%00', 'aaaaaaaaaaaa', '..%2F..']
  it.each(swaps)('$method $path: $parameter is 404', async (route) => {
    for (const value of nothing) {
      const path = fill(route.path, mine, route.parameter, value)
      const body = bodies[name(route)]?.(mine)
      expect((await harness.request(route.method, path, body)).status, value).toBe(404)
    }
  })

  it('an organization in upper case is none', async () => {
    const path = `/organizations/${mine.organization.id.toUpperCase()}`
    expect((await harness.request('GET', path)).status).toBe(/[a-f]/.test(mine.organization.id) ? 404 : 200)
  })
})

/** Queries that lists need: a stream ends at once, and a search has a text. */
const QUERIES: Record<string, string> = { tail: '?seconds=0', find: '?q=example' }

describe('lists', () => {
  const lists = ofOrganizations.filter(({ method, path }) => method === 'GET' && !path.includes('audit'))
  it.each(lists)('$method $path shows nothing of another organization', async (route) => {
    const query = QUERIES[route.path.split('/').at(-1) ?? ''] ?? ''
    const answer = await harness.request('GET', fill(route.path, mine, '', '') + query)
    expect(answer.status).toBe(200)
    for (const id of [
      theirs.organization.id,
      theirs.user.id,
      theirs.group.id,
      theirs.key.id,
      theirs.grant.id,
      theirs.policy.id,
      theirs.integration.id,
      theirs.connection.id,
    ]) {
      expect(answer.text).not.toContain(id)
    }
  })

  it('shows what is its own', async () => {
    const seen = async (path: string) => (await harness.request('GET', mine.base + path)).json.data
    expect(await seen('/users')).toMatchObject([{ id: mine.user.id, group_ids: [mine.group.id] }])
    expect(await seen('/groups')).toMatchObject([{ id: mine.group.id, members: 1 }])
    expect(await seen(`/groups/${mine.group.id}/members`)).toMatchObject([{ id: mine.user.id }])
    expect(await seen('/keys')).toMatchObject([{ id: mine.key.id, label: 'laptop' }])
    expect(await seen('/grants')).toMatchObject([{ id: mine.grant.id, subject_id: mine.user.id }])
    expect(await seen('/dlp/policies')).toMatchObject([{ id: mine.policy.id, version: 1 }])
  })
})

describe('authentication', () => {
  /** What signs in is for anyone. */
  const isOpen = (path: string) => /^\/(setup|sign-in)(\/|$)/.test(path)
  const filled = routes.map((route, index) => ({
    ...route,
    /** Each route has an address of its own, because an address may send few wrong tokens. */
    address: `192.0.2.${index}`,
    filled: route.path
      .replace(/:modelId\{\.\+\}/, 'a/b')
      .replace(/:(\w+)/g, (_all, parameter: string) =>
        parameter === 'providerId' ? crypto.randomUUID() : '00000000-0000-4000-8000-000000000000',
      ),
  }))

  const closed = filled.filter(({ path }) => !isOpen(path))
  it.each(closed)('$method $path is 401 without the token', async ({ method, filled: path, address }) => {
    const from = { 'cf-connecting-ip': address }
    for (const authorization of [
      '',
      'Bearer',
      'Bearer a-guessed-token',
      `Basic ${ADMIN_TOKEN}`,
      ADMIN_TOKEN,
    ]) {
      const answer = await harness.request(method, path, undefined, { ...from, authorization })
      expect(answer, authorization).toMatchObject({ status: 401, json: { error: 'Unauthorized' } })
      expect(answer.text).not.toContain('guessed')
    }
    const keyHeader = { ...from, authorization: '', 'x-api-key': ADMIN_TOKEN }
    expect((await harness.request(method, path, undefined, keyHeader)).status).toBe(401)
  })

  it('is 404 for everything where no token is configured', async () => {
    const request = harness.configured({ ADMIN_TOKEN: '' })
    for (const { method, filled: path } of filled) {
      expect((await request(method, path)).status).toBe(404)
      expect((await request(method, path, undefined, { authorization: '' })).status).toBe(404)
    }
  })

  it('lets the token in, whatever the case of the scheme', async () => {
    const headers = { authorization: `bearer ${ADMIN_TOKEN}` }
    expect((await harness.request('GET', '/organizations', undefined, headers)).status).toBe(200)
  })

  it('answers 404 for unknown paths, after the token', async () => {
    expect((await harness.request('GET', '/nothing')).status).toBe(404)
    expect((await harness.request('GET', '/nothing', undefined, { authorization: '' })).status).toBe(401)
  })
})
