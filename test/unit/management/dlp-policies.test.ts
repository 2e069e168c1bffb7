import { and, eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { dlpPolicies, dlpPolicyVersions } from '../../../schema/dlp.ts'
import { groups } from '../../../schema/identity.ts'
import {
  create,
  dumpDatabase,
  type Harness,
  seedOrganization,
  seedTenant,
  somePolicy,
  startManagement,
  type Tenant,
  uniqueName,
} from './harness.ts'
import { readAll } from './reading.ts'

let harness: Harness
let tenant: Tenant
let mail: string

beforeAll(async () => {
  harness = await startManagement()
  tenant = await seedTenant(harness)
  mail = tenant.integration.slug
}, 60_000)
afterEach(() => {
  vi.restoreAllMocks()
  harness.ledgers.onChange = () => {}
})
afterAll(() => harness.close())

const policies = (path = '') => `${tenant.base}/dlp/policies${path}`
const newPolicy = (values: Record<string, unknown> = {}) => create(harness, policies(), somePolicy(values))
const put = (id: string, body: unknown) => harness.request('PUT', policies(`/${id}`), body)
const BLOCK = [{ detector: 'email', action: 'block' }]

describe('a policy', () => {
  it('is shown whole, with what was left out', async () => {
    const name = uniqueName('whole')
    const scope = { group_ids: [tenant.group.id], user_ids: [tenant.user.id], integration_ids: [mail] }
    const made = await newPolicy({
      name,
      scope,
      directions: ['request', 'tool_result'],
      rules: [
        { detector: 'email', minimum_score: 0.25, action: 'tokenise' },
        { custom: 'badge', action: 'mask' },
        { custom: 'projects', action: 'block' },
      ],
      patterns: [{ id: 'badge', pattern: 'B-\\d{6}' }],
      dictionaries: [{ id: 'projects', terms: [' Blue Moon ', 'Ostrich'], ignore_case: false, score: 0.9 }],
      uninspectable: { request: 'block' },
    })
    const expected = {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name,
      enabled: true,
      version: 1,
      scope,
      stale_scope: [],
      directions: ['request', 'tool_result'],
      rules: [
        { detector: 'email', minimum_score: 0.25, action: 'tokenise' },
        { custom: 'badge', action: 'mask' },
        { custom: 'projects', action: 'block' },
      ],
      patterns: [{ id: 'badge', pattern: 'B-\\d{6}', ignore_case: false, score: 1 }],
      dictionaries: [{ id: 'projects', terms: ['Blue Moon', 'Ostrich'], ignore_case: false, score: 0.9 }],
      uninspectable: { request: 'block' },
      created_at: expect.any(String),
      updated_at: expect.any(String),
    }
    expect(made).toEqual(expected)
    expect((await harness.request('GET', policies(`/${made.id}`))).json).toEqual(expected)
    expect((await harness.request('GET', policies('?limit=1'))).json.data).toEqual([expected])
    const plain = await newPolicy()
    expect(plain).toMatchObject({ scope: {}, patterns: [], dictionaries: [], uninspectable: {} })
  })

  it('has a name of its own, until it is deleted', async () => {
    const name = uniqueName('taken')
    const first = await newPolicy({ name })
    expect(await harness.request('POST', policies(), somePolicy({ name }))).toMatchObject({ status: 422 })
    const another = await newPolicy()
    expect(await put(another.id, { version: 1, name })).toMatchObject({ status: 422 })
    expect((await harness.request('GET', policies(`/${another.id}/versions`))).json.data).toHaveLength(1)
    await harness.request('DELETE', policies(`/${first.id}`))
    expect(await put(another.id, { version: 1, name })).toMatchObject({ status: 200, json: { version: 2 } })
  })

  it('lists page by page, without the deleted ones', async () => {
    const own = await seedOrganization(harness)
    const base = `${own.base}/dlp/policies`
    const made = [own.policy.id]
    for (let count = 0; count < 4; count += 1) made.push((await create(harness, base, somePolicy())).id)
    await harness.request('DELETE', `${base}/${made[2]}`)
    const expected = made.filter((_id, index) => index !== 2).reverse()
    expect((await readAll(harness, base, 2)).map(({ id }) => id)).toEqual(expected)
  })
})

describe('versions', () => {
  it('are made by every change, and stay as they were', async () => {
    const { id, name } = await newPolicy({
      patterns: [{ id: 'a', pattern: 'x' }],
      rules: [{ custom: 'a', action: 'warn' }],
    })
    const renamed = uniqueName('renamed')
    expect((await put(id, { version: 1, rules: [{ custom: 'a', action: 'block' }] })).json.version).toBe(2)
    expect((await put(id, { version: 2, enabled: false, name: renamed })).json).toMatchObject({
      version: 3,
      enabled: false,
      name: renamed,
      rules: [{ custom: 'a', action: 'block' }],
    })
    await harness.request('DELETE', policies(`/${id}`))
    expect((await harness.request('GET', policies(`/${id}`))).status).toBe(404)
    const versions = await readAll(harness, policies(`/${id}/versions`), 2)
    const author = 'admin_token'
    expect(versions).toMatchObject([
      { version: 3, name: renamed, enabled: false, author, created_at: expect.any(String) },
      { version: 2, name, enabled: true, author },
      { version: 1, name, enabled: true, author },
    ])
    const actions = []
    for (const version of [1, 2, 3]) {
      const { status, json } = await harness.request('GET', policies(`/${id}/versions/${version}`))
      expect([status, json.version, json.patterns[0].pattern]).toEqual([200, version, 'x'])
      actions.push(json.rules[0].action)
    }
    expect(actions).toEqual(['warn', 'block', 'block'])
    for (const version of ['0', '4', '01', '1e0', '99999999999']) {
      expect((await harness.request('GET', policies(`/${id}/versions/${version}`))).status, version).toBe(404)
    }
  })

  it('are tied to the audit by a digest; terms and patterns stay out of it', async () => {
    const secret = uniqueName('project')
    const dictionaries = [{ id: 'projects', terms: [secret] }]
    const rules = [{ custom: 'projects', action: 'block' }]
    const { id } = await newPolicy({ dictionaries, rules })
    await put(id, { version: 1, dictionaries: [{ id: 'projects', terms: [secret, 'more'] }] })
    const [created, updated] = harness.ledgers.changes.slice(-2)
    expect(created).toMatchObject({
      action: 'dlp_policy.created',
      resource: `policies/${id}`,
      detail: { version: 1, enabled: true, body_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    })
    expect(updated?.detail).toMatchObject({ version: 2, changed: ['dictionaries'] })
    expect(updated?.detail.body_sha256).not.toBe(created?.detail.body_sha256)
    expect(JSON.stringify(harness.ledgers.changes)).not.toContain(secret)
  })
})

describe('a change', () => {
  it('of a version that is not the current one any more is refused', async () => {
    const { id } = await newPolicy()
    await put(id, { version: 1, rules: BLOCK })
    const late = await put(id, { version: 1, enabled: false })
    expect(late).toMatchObject({
      status: 422,
      json: { message: expect.stringContaining('its version is 2') },
    })
    expect((await harness.request('GET', policies(`/${id}`))).json).toMatchObject({
      version: 2,
      enabled: true,
    })
  })

  it('is refused when another one comes in between', async () => {
    const { id } = await newPolicy()
    harness.ledgers.onChange = async () => {
      harness.ledgers.onChange = () => {}
      expect((await put(id, { version: 1, rules: BLOCK })).status).toBe(200)
    }
    const late = await put(id, { version: 1, enabled: false })
    expect(late).toMatchObject({
      status: 422,
      json: { message: expect.stringContaining('at the same time') },
    })
    const versions = (await harness.request('GET', policies(`/${id}/versions`))).json.data
    expect(versions.map(({ version }: { version: number }) => version)).toEqual([2, 1])
  })

  it('wins alone among many at the same time', async () => {
    const { id } = await newPolicy()
    const rules = Array.from({ length: 8 }, (_, index) => [
      { detector: 'email', minimum_score: index / 10, action: 'block' },
    ])
    const answers = await Promise.all(rules.map((one) => put(id, { version: 1, rules: one })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(422)])
    const won = answers.find(({ status }) => status === 200)?.json
    const now = (await harness.request('GET', policies(`/${id}`))).json
    expect(now).toMatchObject({ version: 2, rules: won.rules })
    expect((await harness.request('GET', policies(`/${id}/versions`))).json.data).toHaveLength(2)
  })

  it('is checked together with what stays', async () => {
    const { id } = await newPolicy({
      patterns: [{ id: 'a', pattern: 'x' }],
      rules: [{ custom: 'a', action: 'warn' }],
    })
    expect(await put(id, { version: 1, rules: BLOCK })).toMatchObject({
      status: 422,
      json: {
        message: 'patterns.0.id: is used by no rule',
        details: { issues: [{ path: 'patterns.0.id', reason: 'is used by no rule' }] },
      },
    })
    expect((await put(id, { version: 1, rules: BLOCK, patterns: [] })).status).toBe(200)
  })

  it('can disable, enable and delete a policy that could no longer be made', async () => {
    const { id } = await newPolicy({ scope: { group_ids: [tenant.group.id] } })
    const damaged = { directions: ['request'], rules: [{ detector: 'forgotten', action: 'block' }], more: 1 }
    await harness.database
      .update(dlpPolicyVersions)
      .set({ body: damaged })
      .where(and(eq(dlpPolicyVersions.policyId, id), eq(dlpPolicyVersions.version, 1)))
    expect((await harness.request('GET', policies(`/${id}`))).json.rules).toEqual(damaged.rules)
    expect((await harness.request('GET', policies('?limit=200'))).status).toBe(200)
    expect((await put(id, { version: 1, enabled: false })).json).toMatchObject({ version: 2, enabled: false })
    expect(await put(id, { version: 2, rules: BLOCK })).toMatchObject({
      status: 422,
      json: { message: expect.stringContaining('more') },
    })
    expect((await harness.request('DELETE', policies(`/${id}`))).status).toBe(200)
    expect((await harness.request('DELETE', policies(`/${id}`))).status).toBe(404)
  })

  it('keeps an organization within what isolates can hold', async () => {
    const own = await seedOrganization(harness)
    const base = `${own.base}/dlp/policies`
    const organizationId = own.organization.id
    const rows = Array.from({ length: 99 }, (_, index) => ({
      id: crypto.randomUUID(),
      name: `policy ${index}`,
    }))
    const same = { organizationId, enabled: false, version: 1 }
    await harness.database.insert(dlpPolicies).values(rows.map((row) => ({ ...row, ...same })))
    const body = {
      scope: {},
      directions: ['request'],
      rules: [],
      patterns: [],
      dictionaries: [],
      uninspectable: {},
    }
    await harness.database
      .insert(dlpPolicyVersions)
      .values(rows.map(({ id, name }) => ({ policyId: id, name, ...same, body, author: 'test' })))
    expect(await harness.request('POST', base, somePolicy())).toMatchObject({
      status: 422,
      json: { message: expect.stringContaining('at most 100 policies') },
    })
    const rules = [{ category: 'custom', action: 'warn' }]
    const change = (id: string | undefined, values: object) =>
      harness.request('PUT', `${base}/${id}`, { version: 1, rules, ...values })
    const terms = Array.from({ length: 5_000 }, (_, index) => `${index} ${'x'.repeat(190)}`)
    const patterns = Array.from({ length: 64 }, (_, n) => ({ id: `p${n}`, pattern: 'x'.repeat(500) }))
    const refused = { status: 422, json: { message: expect.stringContaining('at most 1000000 characters') } }
    const words = (list: string[]) => ({ dictionaries: [{ id: 'a', terms: list }] })
    expect(await change(own.policy.id, { ...words(terms), patterns })).toMatchObject(refused)
    // A ligature of 18 letters counts as all of them.
    const signs = Array.from({ length: 400 }, (_, index) => `${index} ${'\ufdfa'.repeat(134)}`)
    expect(await change(own.policy.id, { ...words(signs), patterns })).toMatchObject(refused)
    expect((await change(own.policy.id, words(signs))).status).toBe(200)
    expect(await change(rows[0]?.id, { patterns })).toMatchObject(refused)
  })
})

describe('a group in the scope of a policy', () => {
  const newGroup = () => create(harness, `${tenant.base}/groups`, { name: uniqueName('group') })
  const removal = (id: string) => harness.request('DELETE', `${tenant.base}/groups/${id}`)
  const shown = async (id: string) => (await harness.request('GET', policies(`/${id}`))).json

  it('stays while an enabled policy names it', async () => {
    const [group, other] = [await newGroup(), await newGroup()]
    const grant = { subject_type: 'group', subject_id: group.id, model_id: '*' }
    await create(harness, `${tenant.base}/grants`, grant)
    const first = await newPolicy({ scope: { group_ids: [other.id, group.id] } })
    const second = await newPolicy({ scope: { group_ids: [group.id], integration_ids: [mail] } })
    const before = await dumpDatabase(harness.database)
    expect(await removal(group.id)).toMatchObject({
      status: 422,
      json: { message: expect.stringMatching(`${first.name}.*${second.name}|${second.name}.*${first.name}`) },
    })
    expect(await dumpDatabase(harness.database)).toBe(before)
    await put(first.id, { version: 1, scope: { group_ids: [other.id] } })
    expect(await removal(group.id)).toMatchObject({
      status: 422,
      json: { message: expect.not.stringContaining(first.name) },
    })
    await harness.request('DELETE', policies(`/${second.id}`))
    expect((await removal(group.id)).status).toBe(200)
    expect((await removal(group.id)).status).toBe(404)
  })

  it('stays when a policy names it while it is being deleted', async () => {
    const group = await newGroup()
    harness.ledgers.onChange = async () => {
      harness.ledgers.onChange = () => {}
      await newPolicy({ scope: { group_ids: [group.id] } })
    }
    expect((await removal(group.id)).status).toBe(422)
    expect((await harness.request('GET', `${tenant.base}/groups/${group.id}`)).status).toBe(200)
    expect(harness.ledgers.changes.at(-1)).toMatchObject({ action: 'change.failed' })
  })

  it('can be deleted under a policy that is disabled, which then cannot be enabled', async () => {
    const [group, other] = [await newGroup(), await newGroup()]
    const scope = { group_ids: [group.id, other.id], user_ids: [tenant.user.id] }
    const { id } = await newPolicy({ enabled: false, scope })
    expect((await removal(group.id)).status).toBe(200)
    expect(await shown(id)).toMatchObject({ scope, stale_scope: [group.id] })
    const { data } = (await harness.request('GET', policies('?limit=1'))).json
    expect(data).toMatchObject([{ id, stale_scope: [group.id] }])
    expect(await put(id, { version: 1, enabled: true })).toMatchObject({
      status: 400,
      json: { message: `scope.group_ids.0: there is no group ${group.id}` },
    })
    const repaired = { version: 1, enabled: true, scope: { group_ids: [other.id] } }
    expect((await put(id, repaired)).json).toMatchObject({ enabled: true, stale_scope: [] })
  })

  it('is told as gone where it went in another way', async () => {
    const group = await newGroup()
    const { id } = await newPolicy({ scope: { group_ids: [group.id] } })
    await harness.database.delete(groups).where(eq(groups.id, group.id))
    expect(await shown(id)).toMatchObject({ enabled: true, stale_scope: [group.id] })
  })
})

const score = (value: unknown) => ({ rules: [{ detector: 'email', minimum_score: value, action: 'mask' }] })
const pattern = (values: Record<string, unknown>) => ({ patterns: [{ id: 'a', pattern: 'x', ...values }] })
const dictionary = (values: Record<string, unknown>) => ({
  dictionaries: [{ id: 'a', terms: ['x'], ...values }],
})

/** Reasons that no schema states. */
const UNSTATED = [/no detector/, /is not among the directions/]

describe('a policy that says nothing sensible', () => {
  it.each<[values: Record<string, unknown>, message: RegExp]>([
    [{ name: undefined }, /^name: is required/],
    [{ rules: undefined }, /^rules: is required/],
    [{ directions: [] }, /^directions: must hold at least one/],
    [{ directions: ['sideways'] }, /^directions\.0: /],
    [{ directions: ['request', 'request'] }, /^directions: must not repeat/],
    [{ colour: 'red' }, /Unrecognized key: "colour"/],
    [{ scope: { group_ids: [] } }, /^scope\.group_ids: must not be empty/],
    [{ scope: { groups: ['x'] } }, /Unrecognized key: "groups"/],
    [{ scope: { user_ids: ['x'] } }, /^scope\.user_ids\.0: must be a UUID/],
    [{ rules: [{ action: 'block' }] }, /^rules\.0: must name one of/],
    [{ rules: [{ detector: 'email', category: 'contact', action: 'block' }] }, /^rules\.0: must name one of/],
    [{ rules: [{ detector: 'email', action: 'explode' }] }, /^rules\.0\.action: /],
    [{ rules: [{ detector: 'No Such', action: 'block' }] }, /^rules\.0\.detector: /],
    [{ rules: [{ detector: 'no_such', action: 'block' }] }, /^rules\.0: there is no detector no_such/],
    [{ rules: [{ category: 'health', action: 'block' }] }, /^rules\.0\.category: /],
    [score(1.5), /^rules\.0\.minimum_score: must be at most 1/],
    [score('1'), /^rules\.0\.minimum_score: must be a number/],
    [pattern({ pattern: 'x'.repeat(513) }), /^patterns\.0\.pattern: must have at most 512/],
    [pattern({ pattern: '' }), /^patterns\.0\.pattern: must not be empty/],
    [pattern({ id: 'two--hyphens' }), /^patterns\.0\.id: /],
    [pattern({ score: 0 }), /^patterns\.0\.score: must be above 0/],
    [
      { patterns: Array.from({ length: 65 }, (_, n) => ({ id: `p${n}`, pattern: 'x' })) },
      /at most 64 patterns/,
    ],
    [dictionary({ terms: [] }), /^dictionaries\.0\.terms: must hold at least one/],
    [dictionary({ terms: ['x'.repeat(201)] }), /^dictionaries\.0\.terms\.0: must have at most 200/],
    [dictionary({ terms: Array(10_001).fill('x') }), /must hold at most 10000 terms/],
    [
      { dictionaries: ['a', 'b'].map((id) => ({ id, terms: Array(2_600).fill('x'.repeat(200)) })) },
      /^dictionaries: must have at most 1000000 characters in all terms together$/,
    ],
    [
      { dictionaries: [{ id: 'a', terms: Array(300).fill('\ufdfa'.repeat(200)) }] },
      /^dictionaries: must have at most 1000000 characters in all terms together$/,
    ],
    [{ uninspectable: { request: 'mask' } }, /^uninspectable\.request: /],
    [{ uninspectable: { response: 'block' } }, /^uninspectable\.response: is not among the directions/],
  ])('%j is refused', async (values, message) => {
    const before = await dumpDatabase(harness.database)
    const answer = await harness.request('POST', policies(), somePolicy(values))
    // 400 is for what the schema of the operation refuses.
    const status = UNSTATED.some((reason) => reason.test(answer.json.message)) ? 422 : 400
    expect(answer.status).toBe(status)
    expect(answer.json.message).toMatch(message)
    expect(await dumpDatabase(harness.database)).toBe(before)
  })

  it('refuses a change without the version it is made for', async () => {
    const { id } = await newPolicy()
    expect((await put(id, { enabled: false })).json.message).toBe('version: is required')
  })

  it('refuses a scope of what is not there, by which it would never hold', async () => {
    const other = await seedTenant(harness)
    const nobody = crypto.randomUUID()
    const { id } = await newPolicy()
    const before = await dumpDatabase(harness.database)
    const slugs = 'which are named by their slug'
    for (const [scope, reason] of [
      [{ model_ids: ['no-such-model'] }, 'scope.model_ids.0: there is no model no-such-model'],
      [
        { integration_ids: [mail, 'no-such-mail'] },
        `scope.integration_ids.1: there is no no-such-mail among the integrations, ${slugs}`,
      ],
      [
        { integration_ids: [tenant.integration.id] },
        `scope.integration_ids.0: there is no ${tenant.integration.id} among the integrations, ${slugs}`,
      ],
      [
        { integration_ids: [other.integration.slug] },
        `scope.integration_ids.0: there is no ${other.integration.slug} among the integrations, ${slugs}`,
      ],
      [{ group_ids: [tenant.group.id, nobody] }, `scope.group_ids.1: there is no group ${nobody}`],
      [{ group_ids: [other.group.id] }, `scope.group_ids.0: there is no group ${other.group.id}`],
      // Ids of one kind are none of another.
      [{ user_ids: [tenant.group.id] }, `scope.user_ids.0: there is no user ${tenant.group.id}`],
      [{ user_ids: [other.user.id] }, `scope.user_ids.0: there is no user ${other.user.id}`],
    ] as const) {
      const [path = ''] = reason.split(': ')
      const refused = {
        status: 400,
        json: { message: reason, details: { issues: [{ path, reason: reason.slice(path.length + 2) }] } },
      }
      expect(await harness.request('POST', policies(), somePolicy({ scope }))).toMatchObject(refused)
      expect(await put(id, { version: 1, scope })).toMatchObject(refused)
    }
    expect(await dumpDatabase(harness.database)).toBe(before)
  })

  it('shows an integration that is there no more', async () => {
    const slug = uniqueName('left')
    const made = { kind: 'mcp', slug, url: 'https://mcp.service.test/mcp' }
    const integration = await create(harness, `${tenant.base}/integrations`, made)
    const { id } = await newPolicy({ scope: { integration_ids: [mail, slug] } })
    await harness.request('DELETE', `${tenant.base}/integrations/${integration.id}`)
    expect((await harness.request('GET', policies(`/${id}`))).json.stale_scope).toEqual([slug])
  })
})
