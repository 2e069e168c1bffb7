import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { auditEntries, callEntries, flush } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'

interface Call {
  id: string
  at: string
  request_id: string
  user_id: string
  key_id: string
  model: string
  surface: string
  provider: string | null
  status: number
  error: string | null
  outcome: string
  found: string[]
  first_event_ms: number | null
  duration_ms: number
  input_tokens: number
  output_tokens: number
  cost: number
}

interface List {
  data: Call[]
  has_more: boolean
  next_cursor: string | null
}

interface Histogram {
  from: string
  to: string
  bucket_ms: number
  complete_from: string
  first_event_ms: { p50: number; p95: number } | null
  data: Array<Record<string, number> & { at: string }>
}

interface Person {
  userId: string
  keyId: string
  key: string
}

const CARD = '4111 1111 1111 1111'

let tenant: Tenant
let ada: Person
let grace: Person
let groupId: string
let calls: Record<'plain' | 'stream' | 'found' | 'blocked' | 'refused' | 'failed' | 'messages', Call>

const api = () => administrator(gateway())
const ask = <Body = List>(path: string, browser: Pick<ConsoleBrowser, 'ask'> = api()) =>
  browser.ask<Body>('GET', `${tenant.base}/calls${path}`)

async function person(): Promise<Person> {
  const userId = await addMember(gateway(), tenant.base)
  const { id, key } = await addKey(gateway(), tenant.base, userId)
  return { userId, keyId: id, key }
}

/** Makes a call. @returns its request id */
async function callOf({ key }: Person, content: string, more: object = {}, path = '/v1/chat/completions') {
  const body = JSON.stringify({
    model: 'scripted-chat',
    max_tokens: 50,
    messages: [{ role: 'user', content }],
    ...more,
  })
  const answer = await send(gateway().baseUrl + path, { method: 'POST', headers: bearer(key), body })
  return String(answer.headers['x-request-id'])
}

beforeAll(async () => {
  tenant = await createTenant(gateway())
  ;[ada, grace] = await Promise.all([person(), person()])
  groupId = (await api().ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'analysts' })).id
  await api().ask('PUT', `${tenant.base}/groups/${groupId}/members/${grace.userId}`)
  await api().ask('POST', `${tenant.base}/dlp/policies`, {
    name: 'cards',
    directions: ['request'],
    rules: [
      { detector: 'card', action: 'redact' },
      { detector: 'iban', action: 'block' },
    ],
  })
  const broken = await registerScript(gateway(), [{ destroy: true }])
  const messages = { model: 'scripted-messages' }
  const requests = {
    plain: await callOf(ada, 'Hello'),
    stream: await callOf(ada, 'Hello', { stream: true }),
    found: await callOf(grace, `My card is ${CARD}.`),
    blocked: await callOf(grace, 'Pay to DE89 3704 0044 0532 0130 00.'),
    refused: await callOf(ada, 'Hello', { model: 'nothing' }),
    failed: await callOf(ada, `${broken} Hello`),
    messages: await callOf(grace, 'Hello', messages, '/v1/messages'),
  }
  await callEntries(gateway(), tenant, 7)
  const { data } = await ask('')
  calls = Object.fromEntries(
    Object.entries(requests).map(([name, id]) => [name, data.find((call) => call.request_id === id)]),
  ) as typeof calls
})

const idsOf = ({ data }: List) => data.map(({ id }) => id)
const allIds = () => Object.values(calls).map(({ id }) => id)

describe('calls', () => {
  it('are listed newest first, with what a row shows', async () => {
    const list = await ask('')
    expect(list).toMatchObject({ has_more: false, next_cursor: null })
    expect(idsOf(list)).toEqual(allIds().reverse())
    expect(calls.plain).toMatchObject({
      user_id: ada.userId,
      key_id: ada.keyId,
      model: 'scripted-chat',
      status: 200,
      error: null,
      outcome: 'ok',
      found: [],
      first_event_ms: null,
    })
    expect(calls.plain.provider).toBeTruthy()
    expect(calls.plain.input_tokens).toBeGreaterThan(0)
    expect(calls.plain.output_tokens).toBeGreaterThan(0)
    expect(calls.plain.cost).toBeGreaterThan(0)
    expect(calls.stream.first_event_ms).toBeGreaterThanOrEqual(0)
    expect(calls.found).toMatchObject({ outcome: 'ok', found: ['card'] })
    expect(calls.blocked).toMatchObject({ outcome: 'blocked', error: 'dlp_blocked', found: ['iban'] })
    expect(calls.refused).toMatchObject({ outcome: 'refused', cost: 0 })
    expect(calls.failed).toMatchObject({ outcome: 'failed' })
  })

  it('are read page by page, also with a filter', async () => {
    for (const filter of ['', `&user_id=${ada.userId}`, `&surface=${calls.plain.surface}`, '&cost_min=0']) {
      const whole = idsOf(await ask(`?limit=200${filter}`))
      const paged: string[] = []
      let cursor: string | null = ''
      while (cursor !== null) {
        const page: List = await ask(`?limit=2${filter}${cursor && `&cursor=${cursor}`}`)
        paged.push(...idsOf(page))
        cursor = page.next_cursor
      }
      expect(paged).toEqual(whole)
      expect(whole.length).toBeGreaterThan(2)
    }
  })

  type Name = keyof typeof calls
  const filters: Array<[name: string, filter: () => string, wanted: Name[]]> = [
    ['request', () => `request_id=${calls.found.request_id}`, ['found']],
    ['user', () => `user_id=${ada.userId}`, ['plain', 'stream', 'refused', 'failed']],
    ['key', () => `key_id=${grace.keyId}`, ['found', 'blocked', 'messages']],
    ['group', () => `group_id=${groupId}`, ['found', 'blocked', 'messages']],
    ['model', () => 'model=scripted-messages', ['messages']],
    ['provider', () => `provider=${calls.messages.provider}`, ['messages']],
    ['surface', () => 'surface=messages', ['messages']],
    ['status', () => 'status=200', ['plain', 'stream', 'found', 'messages']],
    ['outcome ok', () => 'outcome=ok', ['plain', 'stream', 'found', 'messages']],
    ['outcome blocked', () => 'outcome=blocked', ['blocked']],
    ['outcome refused', () => 'outcome=refused', ['refused']],
    ['outcome failed', () => 'outcome=failed', ['failed']],
    ['error', () => 'error=dlp_blocked', ['blocked']],
    ['detector', () => 'found=card', ['found']],
    ['any detector', () => 'found=any', ['found', 'blocked']],
    ['cost', () => 'cost_max=0', ['blocked', 'refused', 'failed']],
    [
      'duration',
      () => `duration_min=${calls.plain.duration_ms}&request_id=${calls.plain.request_id}`,
      ['plain'],
    ],
    ['two of them', () => `found=any&user_id=${grace.userId}&status=200`, ['found']],
    ['none that fits', () => `user_id=${ada.userId}&found=any`, []],
    ['period', () => `from=${calls.found.at}&to=${calls.refused.at}`, ['found', 'blocked']],
  ]
  it.each(filters)('are found by %s', async (_, filter, wanted) => {
    const expected = wanted.map((name) => calls[name].id).reverse()
    expect(idsOf(await ask(`?${filter()}`))).toEqual(expected)
    if (!/from=|group_id=/.test(filter())) {
      const live = await api().call('GET', `${tenant.base}/calls/tail?after=0.0&seconds=0&${filter()}`)
      expect(closedIn(live.text)).toEqual(expected.toReversed())
    }
    const histogram = await ask<Histogram>(
      `/histogram?${filter()}${filter().includes('from=') ? '' : `&from=${dayAgo()}`}`,
    )
    expect(sumOf(histogram)).toBe(expected.length)
  })

  /** Ids of the calls that a stream of live calls told of. */
  const closedIn = (text: string) =>
    [...text.matchAll(/^data: (.*)$/gm)].flatMap(([, data = '']) => {
      const { closed = [] }: { closed?: Call[] } = JSON.parse(data)
      return closed.map(({ id }) => id)
    })
  const dayAgo = () => new Date(Date.now() - 86_400_000).toISOString()
  const sumOf = ({ data }: Histogram) =>
    data.reduce(
      (sum, { at: _, cost: __, ...counts }) =>
        sum + Object.values(counts).reduce((all, each) => all + each, 0),
      0,
    )

  it('are counted by time and outcome', async () => {
    const from = new Date(Date.parse(calls.plain.at) - 3_600_000).toISOString()
    const to = new Date(Date.parse(calls.messages.at) + 1).toISOString()
    const histogram = await ask<Histogram>(`/histogram?from=${from}&to=${to}&buckets=10`)
    expect(histogram).toMatchObject({ from, to, complete_from: from })
    expect(histogram.data).toHaveLength(10)
    const totals = Object.fromEntries(
      ['ok', 'cancelled', 'refused', 'blocked', 'failed'].map((outcome) => [
        outcome,
        histogram.data.reduce((sum, part) => sum + (part[outcome] ?? 0), 0),
      ]),
    )
    const spent = histogram.data.reduce((sum, { cost }) => sum + (cost ?? 0), 0)
    expect(spent).toBe(Object.values(calls).reduce((sum, { cost }) => sum + cost, 0))
    const { first_event_ms: first } = calls.stream
    expect(histogram.first_event_ms).toEqual({ p50: first, p95: first })
    expect(totals).toEqual({ ok: 4, cancelled: 0, refused: 1, blocked: 1, failed: 1 })
    for (const [index, { at }] of histogram.data.entries()) {
      expect(Date.parse(at)).toBe(Date.parse(from) + index * histogram.bucket_ms)
    }
    const wrong = await api().call('GET', `${tenant.base}/calls/histogram?from=${to}&to=${from}`)
    expect(wrong.status).toBe(422)
  })

  it('are shown with their record, and the view of the call of somebody else is recorded', async () => {
    const views = async () =>
      (await auditEntries(gateway(), tenant)).filter(({ action }) => action === 'call.viewed').length
    const before = await views()
    const { record, ...row } = await ask<Call & { record: { record: { id: string } } }>(`/${calls.found.id}`)
    expect(row).toEqual(calls.found)
    expect(record).toMatchObject({
      id: calls.found.id,
      kind: 'call',
      record: { requestId: calls.found.request_id },
    })
    expect(JSON.stringify(record)).not.toContain(CARD)
    expect(await views()).toBe(before + 1)
    const browser = await signedInBrowser(gateway(), tenant.base, grace.userId)
    expect(await ask<Call>(`/${calls.found.id}`, browser)).toMatchObject({ id: calls.found.id })
    expect(await views()).toBe(before + 1)
  })

  it('are the own ones for a member, whatever it asks', async () => {
    const browser = await signedInBrowser(gateway(), tenant.base, ada.userId)
    const own = (['plain', 'stream', 'refused', 'failed'] as const).map((name) => calls[name].id).reverse()
    expect(idsOf(await ask('', browser))).toEqual(own)
    const others = [
      `user_id=${grace.userId}`,
      `key_id=${grace.keyId}`,
      `request_id=${calls.found.request_id}`,
      `group_id=${groupId}`,
      'found=any',
      'model=scripted-messages',
    ]
    for (const filter of others) {
      expect(idsOf(await ask(`?${filter}`, browser)), filter).toEqual([])
      expect(sumOf(await ask(`/histogram?${filter}`, browser)), filter).toBe(0)
    }
    const { next_cursor: cursor } = await ask('?limit=1')
    expect(idsOf(await ask(`?cursor=${cursor}`, browser)).every((id) => own.includes(id))).toBe(true)
    for (const [id, status] of [
      [calls.found.id, 404],
      [calls.plain.id, 200],
    ] as const) {
      expect((await browser.call('GET', `${tenant.base}/calls/${id}`)).status).toBe(status)
    }
  })

  it('are in no other organization', async () => {
    const stranger = await createTenant(gateway())
    const at = (path: string) => api().call('GET', `${stranger.base}/calls${path}`)
    expect((await at(`/${calls.plain.id}`)).status).toBe(404)
    for (const filter of [
      `user_id=${ada.userId}`,
      `request_id=${calls.plain.request_id}`,
      `group_id=${groupId}`,
    ]) {
      expect(jsonOf(await at(`?${filter}`))).toMatchObject({ data: [] })
    }
  })

  it('that a migration has no row of are added by it, and verify', async () => {
    await flush(gateway(), tenant)
    const rows = () =>
      query(gateway(), 'SELECT * FROM calls WHERE organization_id = $1 ORDER BY id', [tenant.organizationId])
    const before = await rows()
    await query(gateway(), 'DELETE FROM calls WHERE organization_id = $1', [tenant.organizationId])
    const migration = readFileSync(
      join(import.meta.dirname, '../../schema/migrations/0021_calls.sql'),
      'utf8',
    )
    const backfill = migration
      .split('--> statement-breakpoint')
      .find((statement) => statement.includes('DO $$'))
    await query(gateway(), String(backfill))
    expect(await rows()).toEqual(before)
  })
})
