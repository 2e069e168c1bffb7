import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  create,
  dumpDatabase,
  type Harness,
  seedTenant,
  somePolicy,
  startManagement,
  type Tenant,
} from './harness.ts'

let harness: Harness
let tenant: Tenant

beforeAll(async () => {
  harness = await startManagement()
  tenant = await seedTenant(harness)
}, 60_000)
afterEach(() => vi.restoreAllMocks())
afterAll(() => harness.close())

const test = (body: unknown) => harness.request('POST', `${tenant.base}/dlp/test`, body)
const dryRun = (body: unknown) => harness.request('POST', `${tenant.base}/dlp/dry-run`, body)
const policy = (...rules: unknown[]) => ({ directions: ['request'], rules })
const onEmail = (action: string, more: Record<string, unknown> = {}) => ({
  detector: 'email',
  action,
  ...more,
})

const ADDRESS = 'ada.lovelace@example.com'
const TEXT = `Write to ${ADDRESS} today.`
/** Units of a piece of the stream. */
const PIECE = 4
const SPAN = { start: 9, end: 9 + ADDRESS.length, detector: 'email', category: 'contact' }

describe('a test', () => {
  it.each<[action: string, text: string | RegExp | null]>([
    ['allow', TEXT],
    ['warn', TEXT],
    ['mask', /^Write to \*[*.@]+\.?\S* today\.$/],
    ['redact', 'Write to [REDACTED:EMAIL] today.'],
    ['tokenise', /^Write to \[\[EMAIL_[0-9a-f]{12}\]\] today\.$/],
    ['block', null],
  ])('of %s shows what is found and what would go on', async (action, text) => {
    const answer = await test({ policy: policy(onEmail(action)), text: TEXT })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.json).toEqual({
      direction: 'request',
      spans: [{ ...SPAN, score: expect.any(Number), action }],
      blocked: action === 'block',
      text: text instanceof RegExp ? expect.stringMatching(text) : text,
      held_back: null,
    })
    expect(answer.json.text === null || !answer.json.text.includes(ADDRESS)).toBe(
      !['allow', 'warn'].includes(action),
    )
  })

  it.each(['redact', 'block'])('of %s says what a stream of the text holds back', async (action) => {
    const trial = { policy: policy(onEmail(action)), text: TEXT, stream: true }
    const answer = await test(trial)
    expect(answer.status, answer.text).toBe(200)
    const { most, at } = answer.json.held_back
    // All of the address up to its end, which the full stop or the space shows.
    expect(most).toBeGreaterThan(ADDRESS.length - PIECE)
    expect(most).toBeLessThan(TEXT.length)
    expect(at).toBeGreaterThan(SPAN.end - PIECE)
    expect(at).toBeLessThanOrEqual(SPAN.end + PIECE)
    const none = await test({ ...trial, text: 'one two three four', policy: policy(onEmail(action)) })
    expect(none.json.held_back.most).toBeLessThanOrEqual('three'.length + PIECE)
    const unbounded = { ...policy({ custom: 'all', action }), patterns: [{ id: 'all', pattern: 'a.*b' }] }
    const all = await test({ ...trial, policy: unbounded })
    expect(all.json.held_back).toEqual({ most: TEXT.length, at: TEXT.length })
    expect(await test({ ...trial, text: 'a'.repeat(5_001) })).toMatchObject({ status: 400 })
  })

  it('uses a stored policy, disabled or narrowed as it may be', async () => {
    const stored = await create(
      harness,
      `${tenant.base}/dlp/policies`,
      somePolicy({ enabled: false, scope: { user_ids: [tenant.user.id] }, directions: ['response'] }),
    )
    const answer = await test({ policy_id: stored.id, text: TEXT })
    expect(answer.json).toMatchObject({ direction: 'response', spans: [{ ...SPAN, action: 'redact' }] })
    expect(await test({ policy_id: stored.id, direction: 'request', text: TEXT })).toMatchObject({
      status: 422,
      json: { message: 'direction: the policy covers response' },
    })
  })

  it('finds patterns and words of the customer', async () => {
    const own = {
      directions: ['request'],
      patterns: [{ id: 'badge', pattern: '\\bB-[0-9]{6}\\b' }],
      dictionaries: [{ id: 'projects', terms: ['Blue Moon'] }],
      rules: [
        { custom: 'badge', action: 'redact' },
        { custom: 'projects', action: 'redact' },
      ],
    }
    const { json } = await test({ policy: own, text: 'B-123456 works on blue moon' })
    expect(json.spans).toMatchObject([
      { start: 0, end: 8, detector: 'badge', category: 'custom', score: 1, action: 'redact' },
      { start: 18, end: 27, detector: 'projects', category: 'custom', score: 1, action: 'redact' },
    ])
    expect(json.text).toBe('[REDACTED:BADGE] works on [REDACTED:PROJECTS]')
  })

  it.each<[pattern: string]>([['(?=a)b'], ['(a)\\1'], ['(unclosed']])(
    'says why the pattern %s cannot be used',
    async (source) => {
      const tried = {
        directions: ['request'],
        patterns: [{ id: 'a', pattern: source }],
        rules: [{ custom: 'a', action: 'block' }],
      }
      const answer = await test({ policy: tried, text: 'x' })
      expect(answer).toMatchObject({
        status: 422,
        json: { message: expect.stringMatching(/^patterns\.0\.pattern: .{5}/) },
      })
    },
  )

  it('finds nothing below the score a rule asks for', async () => {
    const { json } = await test({ policy: policy(onEmail('block', { minimum_score: 1 })), text: TEXT })
    const found = await test({ policy: policy(onEmail('block', { minimum_score: 0 })), text: TEXT })
    const score = found.json.spans[0]?.score ?? 0
    expect(json.spans).toHaveLength(score === 1 ? 1 : 0)
    expect(found.json.spans).toHaveLength(1)
  })
})

it('a dry run counts by detector and action', async () => {
  const rules = [onEmail('block', { minimum_score: 0 }), { custom: 'projects', action: 'warn' }]
  const tried = { ...policy(...rules), dictionaries: [{ id: 'projects', terms: ['ostrich'] }] }
  const samples = [TEXT, 'nothing here', `${ADDRESS} and grace@example.org`, 'an ostrich, an OSTRICH']
  expect((await dryRun({ policy: tried, samples })).json).toEqual({
    direction: 'request',
    samples: 4,
    with_findings: 3,
    blocked: 2,
    findings: [
      { detector: 'email', category: 'contact', action: 'block', count: 3 },
      { detector: 'projects', category: 'custom', action: 'warn', count: 2 },
    ],
  })
})

describe('what is asked wrongly', () => {
  const whole = policy(onEmail('block'))
  it.each<[path: 'test' | 'dry-run', body: Record<string, unknown>, message: RegExp]>([
    ['test', { text: 'x' }, /give either policy or policy_id/],
    ['test', { text: 'x', policy: whole, policy_id: crypto.randomUUID() }, /give either policy or policy_id/],
    ['test', { policy: whole }, /^text: is required/],
    ['test', { policy: whole, text: 'x'.repeat(200_001) }, /^text: must have at most 200000/],
    ['test', { policy: { ...whole, name: 'x' }, text: 'x' }, /^policy: Unrecognized key: "name"/],
    ['dry-run', { policy: whole, samples: [] }, /^samples: must hold at least one/],
    ['dry-run', { policy: whole, samples: Array(1_001).fill('') }, /^samples: must hold at most 1000/],
    ['dry-run', { policy: whole, samples: ['x'.repeat(1_000_001)] }, /^samples: must have at most 1000000/],
  ])('%s %j', async (path, body, message) => {
    const answer = await harness.request('POST', `${tenant.base}/dlp/${path}`, body)
    expect(answer.status).toBe(400)
    expect(answer.json.message).toMatch(message)
  })

  it.each<[body: Record<string, unknown>, message: RegExp]>([
    [{ policy: policy({ detector: 'no_such', action: 'mask' }), text: 'x' }, /no detector no_such/],
    [{ policy: whole, text: 'x', direction: 'response' }, /^direction: the policy covers request/],
  ])('test %j has the right form, and is 422', async (body, message) => {
    const answer = await harness.request('POST', `${tenant.base}/dlp/test`, body)
    expect(answer.status).toBe(422)
    expect(answer.json.message).toMatch(message)
  })
})

it('lists what policies can look for', async () => {
  const { status, json } = await harness.request('GET', '/dlp/detectors')
  expect(status).toBe(200)
  expect(json).toMatchObject({ has_more: false, next_cursor: null })
  expect(json.data.find(({ id }: { id: string }) => id === 'email')).toEqual({
    id: 'email',
    category: 'contact',
    description: expect.any(String),
    minimum_score: expect.any(Number),
  })
  const rules = json.data.map(({ id }: { id: string }) => ({ detector: id, action: 'block' }))
  expect((await test({ policy: policy(...rules), text: '' })).json.spans).toEqual([])
})

it('a text that is tried is stored nowhere, logged nowhere and not told to the audit', async () => {
  const lines: string[] = []
  for (const method of ['log', 'error', 'warn', 'info', 'debug'] as const) {
    vi.spyOn(console, method).mockImplementation((...words) => void lines.push(words.join(' ')))
  }
  const canary = `canary-${crypto.randomUUID()}`
  const text = `${canary}@example.com and ${canary}`
  const before = [harness.ledgers.changes.length, await dumpDatabase(harness.database)]
  const answers = [
    await test({ policy: policy(onEmail('block')), text }),
    await dryRun({ policy: policy(onEmail('block')), samples: [text] }),
    // Refused in every way there is.
    await test({ policy: policy(onEmail('explode')), text }),
    await test({ policy: policy({ detector: 'no_such', action: 'mask' }), text }),
    await test({ policy_id: crypto.randomUUID(), text }),
    await test({ policy: policy(onEmail('block')), text: [text] }),
    await test({ policy: policy(onEmail('block')), text: text.repeat(10_000) }),
    await dryRun({ policy: policy(onEmail('block')), samples: text }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 400, 422, 404, 400, 400, 400])
  for (const answer of answers) expect(answer.text).not.toContain(canary)
  harness.postgresForwarder.behaviour = { status: 502, body: 'bad gateway' }
  const lost = await test({ policy_id: tenant.policy.id, text })
  harness.postgresForwarder.behaviour = 'forward'
  expect(lost.status).toBe(500)
  expect(lost.text).not.toContain(canary)
  expect(lines.length, 'something was logged').toBeGreaterThan(0)
  expect(lines.join('\n')).not.toContain(canary)
  await harness.ledgers.of(tenant.organization.id).flush()
  expect(JSON.stringify(harness.ledgers.changes)).not.toContain(canary)
  expect(harness.ledgers.changes.length).toBe(before[0])
  expect(await dumpDatabase(harness.database)).not.toContain(canary)
})
