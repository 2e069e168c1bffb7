import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ADMIN_TOKEN,
  create,
  dumpDatabase,
  type Harness,
  type Organization,
  seedOrganization,
  someModel,
  someProvider,
  startManagement,
  uniqueName,
} from './harness.ts'

let harness: Harness
let tenant: Organization
let provider: { id: string }

beforeAll(async () => {
  harness = await startManagement()
  tenant = await seedOrganization(harness)
  provider = await create(harness, '/providers', someProvider())
}, 60_000)
afterAll(() => harness.close())

/** Paths below `{o}` (the organization), with `{user}`, `{provider}` and the like filled in. */
const fill = (text: string) =>
  text
    .replaceAll('{o}', tenant.base)
    .replaceAll('{user}', tenant.user.id)
    .replaceAll('{group}', tenant.group.id)
    .replaceAll('{key}', tenant.key.id)
    .replaceAll('{provider}', provider.id)

const model = (values: Record<string, unknown> = {}) => ({ ...someModel('{provider}'), ...values })
const organization = (values: Record<string, unknown>) => ({ name: 'New', slug: 'new', ...values })
const key = (values: Record<string, unknown>) => ({ user_id: '{user}', label: 'x', ...values })

const agent = (metadata: unknown, more: Record<string, unknown> = {}) => ({
  created_by: '{user}',
  definition: { name: 'x', steps: [{ instructions: 'x', model: 'acme/model', ...more }], metadata },
})
const NOT_STORABLE = 'must have at most 100 levels, and texts without NUL and halves of characters'

const refusals: Array<[method: string, path: string, body: unknown, message: string | RegExp]> = [
  ['POST', '/organizations', {}, 'name: is required; slug: is required'],
  ['POST', '/organizations', organization({ colour: 'red' }), 'body: Unrecognized key: "colour"'],
  ['POST', '/organizations', organization({ name: '   ' }), 'name: must not be empty'],
  ['POST', '/organizations', organization({ name: 'a\u0000b' }), 'name: must not hold control characters'],
  ['POST', '/organizations', organization({ name: '\ud800' }), 'name: must not hold control characters'],
  [
    'POST',
    '/organizations',
    organization({ name: 'x'.repeat(201) }),
    'name: must have at most 200 characters',
  ],
  ['POST', '/organizations', organization({ slug: 'No Spaces' }), /^slug: must be lowercase/],
  ['POST', '/organizations', organization({ slug: '-x' }), /^slug: must be lowercase/],
  ['POST', '/organizations', organization({ rate_limit_per_minute: 0 }), /must be at least 1/],
  ['POST', '/organizations', organization({ rate_limit_per_minute: 1.5 }), /must be a whole number/],
  ['POST', '/organizations', organization({ rate_limit_per_minute: '10' }), /^rate_limit_per_minute: /],
  ['POST', '/organizations', organization({ rate_limit_per_minute: 1e12 }), /must be at most 1000000/],
  ['POST', '/organizations', [], /^body: /],
  ['POST', '{o}/agents', agent({ a: [{ 'b\u0000': 1 }] }), `definition.metadata: ${NOT_STORABLE}`],
  ['POST', '{o}/agents', agent({ a: ['x\u0000'] }), `definition.metadata: ${NOT_STORABLE}`],
  ['POST', '{o}/agents', agent({ a: 'x\ud800' }), `definition.metadata: ${NOT_STORABLE}`],
  [
    'POST',
    '{o}/agents',
    agent({}, { output: { format: 'json_schema', schema: { title: '\u0000' } } }),
    `definition.steps.0.output.schema: ${NOT_STORABLE}`,
  ],
  ['POST', '/organizations', 'null', /^body: /],
  ['PUT', '{o}', { slug: 'other' }, 'body: Unrecognized key: "slug"'],
  ['PUT', '{o}', { disabled: 'yes' }, /^disabled: /],
  ['POST', '{o}/users', { email: 'nobody', name: 'N' }, 'email: must be an e-mail address'],
  ['POST', '{o}/users', { email: 'n@example.com', name: 'N', role: 'god' }, /^role: /],
  ['PUT', '{o}/users/{user}', { email: 'n@example.com' }, 'body: Unrecognized key: "email"'],
  ['POST', '{o}/groups', { name: '' }, 'name: must not be empty'],
  ['POST', '{o}/keys', key({ user_id: 'x' }), 'user_id: must be a UUID'],
  ['POST', '{o}/keys', key({ scopes: [] }), 'scopes: must hold at least one scope'],
  ['POST', '{o}/keys', key({ scopes: ['models', 'models'] }), 'scopes: must not repeat a scope'],
  ['POST', '{o}/keys', key({ scopes: ['root'] }), /^scopes\.0: /],
  ['POST', '{o}/keys', key({ expires_at: 'soon' }), /^expires_at: must be a date/],
  ['POST', '{o}/keys', key({ compatibility: 'x' }), 'compatibility: must be headgate or open_responses'],
  ['PUT', '{o}/keys/{key}', {}, 'body: must hold label or compatibility'],
  ['PUT', '{o}/keys/{key}', { compatibility: 'x' }, 'compatibility: must be headgate or open_responses'],
  ['PUT', '{o}/keys/{key}', { scopes: [] }, /Unrecognized key: "scopes"/],
  ['POST', '{o}/keys', key({ key: 'mine' }), 'body: Unrecognized key: "key"'],
  ['POST', '{o}/grants', { model_id: '*' }, /^subject_type: must be organization, group, user or role/],
  ['POST', '{o}/grants', { subject_type: 'user', model_id: '*' }, 'subject_id: is required'],
  ['POST', '{o}/grants', { subject_type: 'role', subject_id: 'god', model_id: '*' }, /^subject_id: /],
  ['POST', '{o}/grants', { subject_type: 'organization', model_id: 'agent/x' }, /^model_id: /],
  ['POST', '{o}/credits', { amount: 0, reason: 'x' }, 'amount: must not be 0'],
  ['POST', '{o}/credits', { amount: 0.5, reason: 'x' }, /^amount: must be a whole number/],
  ['POST', '{o}/credits', { amount: 1e16, reason: 'x' }, /amount: must be at most/],
  ['POST', '{o}/credits', { amount: 1 }, 'reason: is required'],
  ['POST', '{o}/credits', { amount: 1, reason: 'x', id: 'a b' }, /^id: must be/],
  ['POST', '/providers', someProvider({ kind: 'other' }), /^kind: /],
  ['POST', '/providers', someProvider({ credential: '' }), 'credential: must not be empty'],
  [
    'POST',
    '/providers',
    someProvider({ credential: 'a\r\nx-evil: 1' }),
    'credential: must be one line of text',
  ],
  [
    'POST',
    '/providers',
    someProvider({ credential: 5 }),
    'credential: must be a text or an object of named texts',
  ],
  ['POST', '/providers', someProvider({ credential: undefined }), 'credential: is required'],
  ['POST', '/providers', someProvider({ credential: ['a'] }), /^credential: /],
  ['POST', '/providers', someProvider({ credential: { secret: 1 } }), /^credential(\.secret)?: /],
  ['POST', '/providers', someProvider({ credential: { secret: '' } }), /^credential: must hold names of/],
  [
    'POST',
    '/providers',
    someProvider({ credential: { secret: 'a\r\nb: c' } }),
    /^credential: must hold names of/,
  ],
  ['POST', '/providers', someProvider({ credential_set: true }), 'body: Unrecognized key: "credential_set"'],
  ['PUT', '/models/new', model({ prices: { input: 1 } }), 'prices.output: is required'],
  ['PUT', '/models/new', model({ prices: { input: -1, output: 1 } }), 'prices.input: must be at least 0'],
  ['PUT', '/models/new', model({ routes: [] }), 'routes: must hold at least one route'],
  ['PUT', '/models/new', model({ context_window: 3e9 }), /^context_window: /],
  ['PUT', '/models/agent/x', model(), /^The model id must be/],
  ['PUT', '/models/a%20b', model(), /^The model id must be/],
]

/** Of the right form, and refused all the same. */
const contradictions: typeof refusals = [
  ['POST', '{o}/keys', key({ expires_at: '2020-01-01' }), 'expires_at: must be in the future'],
  [
    'POST',
    '/providers',
    someProvider({ credential: { key: 'x' } }),
    'credential: this kind of provider takes `secret`; missing: `secret`; not known: 1 other part.',
  ],
]

describe('bodies', () => {
  it.each(contradictions)('%s %s %j is 422', async (method, path, body, message) => {
    const answer = await harness.request(method, fill(path), JSON.parse(fill(JSON.stringify(body))))
    expect(answer).toMatchObject({ status: 422, json: { error: 'Unprocessable Entity', message } })
  })

  it.each(refusals)('%s %s %j is 400', async (method, path, body, message) => {
    const before = await dumpDatabase(harness.database)
    const sent = typeof body === 'string' ? body : JSON.parse(fill(JSON.stringify(body)))
    const answer = await harness.request(method, fill(path), sent)
    expect(answer).toMatchObject({ status: 400, json: { error: 'Bad Request' } })
    if (typeof message === 'string') expect(answer.json.message).toBe(message)
    else expect(answer.json.message).toMatch(message)
    expect(await dumpDatabase(harness.database)).toBe(before)
  })

  it.each([
    [99, 201],
    [101, 400],
    [30_000, 400],
  ])('JSON in %i arrays is %i', async (depth, status) => {
    const deep = '['.repeat(depth) + ']'.repeat(depth)
    const body = fill(JSON.stringify(agent({ a: 'DEEP' })).replace('"DEEP"', deep))
    expect((await harness.request('POST', fill('{o}/agents'), body)).status).toBe(status)
  })

  it('names every member that does not fit, for people and for programs', async () => {
    const answer = await harness.request('POST', '/organizations', { slug: 'A', x: 1, y: 2 })
    expect(answer.json.details.issues).toEqual([
      { path: 'name', reason: 'is required' },
      { path: 'slug', reason: expect.stringContaining('lowercase') },
      { path: 'body', reason: 'Unrecognized keys: "x", "y"' },
    ])
  })

  it('refuses malformed JSON and other content types', async () => {
    expect((await harness.request('POST', '/organizations', '{"name":')).status).toBe(400)
    expect((await harness.request('POST', '/organizations', '')).status).toBe(400)
    const headers = { 'content-type': 'text/plain' }
    const answer = await harness.request('POST', '/organizations', { name: 'x', slug: 'x' }, headers)
    expect(answer).toMatchObject({ status: 400, json: { message: expect.stringContaining('content-type') } })
  })

  it('refuses more than 50 MB, declared or not, and reads at most 64 MB of the rest', async () => {
    const declared = await harness.request('POST', '/organizations', {}, { 'content-length': '52428801' })
    expect(declared).toMatchObject({ status: 413, json: { message: expect.any(String) } })
    const chunk = new Uint8Array(1024 * 1024).fill(32)
    let sent = 0
    const stream = new ReadableStream({
      pull: (controller) => {
        sent += 1
        controller.enqueue(chunk)
        if (sent > 200) controller.close()
      },
    })
    const response = await harness.app.request('/api/organizations', {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: stream,
      duplex: 'half',
    } as RequestInit)
    expect(response.status).toBe(413)
    expect(sent).toBeLessThan(120)
  })

  it('never repeats a value that may be secret', async () => {
    const answer = await harness.request('POST', '/providers', {
      ...someProvider({ credential: 'sk-line1\nsk-line2' }),
      kind: 'sk-misplaced',
    })
    expect(answer.status).toBe(400)
    expect(answer.text).not.toMatch(/sk-/)
    for (const credential of [{ 'sk-name': 'sk-x' }, { sk_name: 'x' }, { secret: { 'sk-name': 1 } }]) {
      const refused = await harness.request('POST', '/providers', someProvider({ credential }))
      expect([400, 422]).toContain(refused.status)
      expect(refused.text).not.toMatch(/sk[-_]/)
    }
  })
})

describe('queries', () => {
  const refused: Array<[path: string, message: string | RegExp]> = [
    ['/organizations?limit=0', 'limit: must be at least 1'],
    ['/organizations?limit=201', 'limit: must be at most 200'],
    ['/organizations?limit=ten', 'limit: must be a number'],
    ['/organizations?limit=1&limit=2', /^limit: /],
    ['/organizations?page=2', 'query: Unrecognized key: "page"'],
    ['/organizations?cursor=abc', 'cursor: is not a cursor of this list'],
    [`/organizations?cursor=${Buffer.from('[1,"\\u0000"]').toString('base64url')}`, /^cursor: /],
    [`/organizations?cursor=${Buffer.from('[-1,"x"]').toString('base64url')}`, /^cursor: /],
    [`/organizations?cursor=${Buffer.from('[1e300,"x"]').toString('base64url')}`, /^cursor: /],
    ['{o}?verbose=1', 'query: Unrecognized key: "verbose"'],
    ['{o}/users?email=x', 'email: must be an e-mail address'],
    ['{o}/keys?user_id=x', 'user_id: must be a UUID'],
    ['{o}/audit?from=yesterday', /^from: must be a date/],
    ['{o}/audit?status=ok', 'status: must be a number'],
    ['{o}/audit?user_id=%00', 'user_id: must not hold control characters'],
    ['{o}/audit/verify?shard=-1', /^shard: /],
    ['/audit/unrecorded?cursor=x', 'cursor: is not a cursor of this list'],
    ['/audit/heads?organization_id=x', /^organization_id: /],
    ['/audit/checkpoints/verify?limit=101', /^limit: /],
    ['{o}/audit/export/records?to_sequence=-1', /^to_sequence: /],
    ['{o}/usage?group_by=colour', /^group_by: /],
    ['{o}/usage/events?group_by=model', 'query: Unrecognized key: "group_by"'],
  ]
  it.each(refused)('GET %s is 400', async (path, message) => {
    const answer = await harness.request('GET', fill(path))
    expect(answer).toMatchObject({ status: 400, json: { error: 'Bad Request' } })
    if (typeof message === 'string') expect(answer.json.message).toBe(message)
    else expect(answer.json.message).toMatch(message)
  })
})

describe('base_url', () => {
  const refused = [
    ['http://api.example.com', 'only https'],
    ['ftp://api.example.com', 'only https'],
    ['https://user:word@api.example.com', 'credentials in a URL'],
    ['https://api.example.com?key=1', 'query'],
    ['https://api.example.com/v1?', 'query'],
    ['https://api.example.com/#x', 'query or fragment'],
    ['https://127.0.0.1', 'private addresses'],
    ['https://10.1.2.3/v1', 'private addresses'],
    ['https://0x7f.1/', 'private addresses'],
    ['https://2130706433/', 'private addresses'],
    ['https://169.254.169.254/latest', 'private addresses'],
    ['https://[::1]/', 'private addresses'],
    ['https://[::ffff:10.0.0.1]/', 'private addresses'],
    ['https://[fd00::1]/', 'private addresses'],
    ['https://localhost/', 'internal names'],
    ['https://api.example.com:8080', 'port 8080'],
    ['api.example.com', 'not a URL'],
    ['http://127.0.0.1:9998', 'only https'],
  ] as const
  it.each(refused)('%s is refused', async (address, reason) => {
    const answer = await harness.request('POST', '/providers', someProvider({ base_url: address }))
    expect(answer.status).toBe(422)
    expect(answer.json.message).toMatch(/^base_url: /)
    expect(answer.json.message).toContain(reason)
    expect(answer.text).not.toContain('word')
  })

  const taken = [
    ['https://api.example.com/v1/', 'https://api.example.com/v1'],
    ['https://API.example.com', 'https://api.example.com'],
    ['http://127.0.0.1:9999/v1', 'http://127.0.0.1:9999/v1'],
    ['https://models.internal:8443//', 'https://models.internal:8443'],
  ] as const
  it.each(taken)('%s is taken as %s', async (address, stored) => {
    const made = await create(harness, '/providers', someProvider({ base_url: address }))
    expect(made.base_url).toBe(stored)
  })
})

describe('conflicts are 422', () => {
  it('for a slug, a member, a group, a grant or a provider that exists', async () => {
    const { organization: held, base, user, group } = tenant
    const twice: Array<[string, unknown]> = [
      ['/organizations', { name: 'Again', slug: held.slug }],
      [`${base}/users`, { email: user.email.toUpperCase(), name: 'Again' }],
      [`${base}/groups`, { name: group.name }],
      [`${base}/grants`, { subject_type: 'user', subject_id: user.id, model_id: '*' }],
    ]
    for (const [path, body] of twice) {
      expect(await harness.request('POST', path, body), path).toMatchObject({ status: 422 })
    }
    const provider = await create(harness, '/providers', someProvider())
    const again = await harness.request('POST', '/providers', someProvider({ name: provider.name }))
    expect(again.status).toBe(422)
  })

  it('for a key of a disabled user', async () => {
    const email = `${uniqueName('gone')}@example.com`
    const user = await create(harness, `${tenant.base}/users`, { email, name: 'Gone' })
    await harness.request('DELETE', `${tenant.base}/users/${user.id}`)
    const answer = await harness.request('POST', `${tenant.base}/keys`, { user_id: user.id, label: 'x' })
    expect(answer.status).toBe(422)
  })

  it('for the name of a user that two organizations share; the rest of it can change', async () => {
    const other = await seedOrganization(harness)
    const shared = await create(harness, `${other.base}/users`, { email: tenant.user.email, name: 'Other' })
    expect(shared).toMatchObject({ id: tenant.user.id, name: 'Person' })
    const path = `${other.base}/users/${shared.id}`
    expect((await harness.request('PUT', path, { name: 'Renamed' })).status).toBe(422)
    expect((await harness.request('PUT', path, { role: 'owner' })).json.role).toBe('owner')
    const mine = await harness.request('GET', `${tenant.base}/users/${tenant.user.id}`)
    expect(mine.json).toMatchObject({ name: 'Person', role: 'member' })
  })
})
