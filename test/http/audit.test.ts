import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { type AuditEntry, auditEntries, auditEntryOf, credits, flush, readList } from '../harness/records.ts'
import { type Answer, send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { allKinds, type Kind } from './support/call-kinds.ts'

/** An address for documentation (RFC 5737), so that no other calls are counted with these. */
const IP = `203.0.113.${1 + Math.floor(Math.random() * 250)}`
let tenant: Tenant
let kinds: Kind[]
const answers = new Map<string, Answer>()

const SCRIPTED = { chat_completions: 'scripted-openai', messages: 'scripted-anthropic' }

beforeAll(async () => {
  const address = gateway()
  const models = ['scripted-chat', 'scripted-messages']
  // Enough for every call here but for one with 16,000 tokens of output.
  tenant = await createTenant(address, { models, credits: 60_000 })
  const [revoked, scoped] = await Promise.all([
    addKey(address, tenant.base, tenant.userId),
    addKey(address, tenant.base, tenant.userId, { scopes: ['agents'] }),
  ])
  await administrator(address).ask('DELETE', `${tenant.base}/keys/${revoked.id}`)
  const limitedUser = await addMember(address, tenant.base, { rate_limit_per_minute: 1 })
  const limited = await addKey(address, tenant.base, limitedUser)
  kinds = allKinds({ revoked: revoked.key, scoped: scoped.key, limited: limited.key })
  for (const kind of kinds) {
    let answer = await call(kind)
    // The limit allows one call a minute, and a minute can end between two.
    while (kind.expected.status === 429 && answer.status === 200) answer = await call(kind)
    answers.set(kind.name, answer)
  }
})

function call({
  route,
  text = 'script:canned prompt=3',
  more,
  raw,
  key = tenant.key,
  headers,
}: Kind): Promise<Answer> {
  const sent = { ...bearer(key), 'cf-connecting-ip': IP, ...headers }
  if (route === 'models') return send(`${gateway().baseUrl}/v1/models`, { headers: sent })
  const body = raw ?? JSON.stringify(route.request(text, { max_tokens: 20, ...more }))
  return send(`${gateway().baseUrl}${route.path}?q=secret`, { method: 'POST', headers: sent, body })
}

const actionOf = (route: Kind['route']) => (route === 'models' ? 'GET /v1/models' : `POST ${route.path}`)

describe('the audit record of a call', () => {
  it('is there once for every kind of call, with everything that is known of it', async () => {
    for (const kind of kinds) {
      const answer = answers.get(kind.name) as Answer
      expect(answer.status, `${kind.name}: ${answer.text}`).toBe(kind.expected.status)
      expectRecord(kind, answer, await auditEntryOf(gateway(), tenant, answer.headers['x-request-id']))
    }
  })

  it('holds no key, no query, no content and no answer', async () => {
    const text = JSON.stringify(await auditEntries(gateway(), tenant))
    for (const secret of [
      tenant.key,
      tenant.key.split('_')[2] ?? '',
      'script:',
      'secret',
      'scripted answer',
    ]) {
      expect(text).not.toContain(secret)
    }
  })
})

function expectRecord(kind: Kind, answer: Answer, entry: AuditEntry): void {
  const { route, expected, key } = kind
  const surface = route === 'models' ? 'models' : route.surface
  const isModelCall = route !== 'models'
  const record = entry.record as Record<string, unknown> & { at: number; attempts: unknown[]; flags: unknown }
  expect(record, kind.name).toMatchObject({
    kind: 'call',
    organizationId: tenant.organizationId,
    requestId: answer.headers['x-request-id'],
    surface,
    action: actionOf(route),
    modelId: isModelCall ? route.model : null,
    errorCode: null,
    connectionId: null,
    ...(kind.more?.model !== undefined && { modelId: kind.more.model }),
    ...expected,
    actor: {
      administrator: null,
      // Its network: the deployment does not store addresses whole.
      ip: '203.0.113.0',
      ...(key === undefined && { userId: tenant.userId, keyId: tenant.keyId }),
    },
  })
  expect(entry).toMatchObject({
    status: expected.status,
    request_id: record.requestId,
    surface,
    action: record.action,
    model: record.modelId,
    credits_settled: record.cost,
  })
  expect(Math.abs(record.at - Date.now())).toBeLessThan(120_000)
  expectDispatch(kind, record)
}

/** Members of calls that reached an upstream. */
function expectDispatch({ route, expected }: Kind, record: Record<string, unknown>): void {
  const dispatched =
    route !== 'models' && record.reserved !== undefined && (record.attempts as unknown[]).length > 0
  if (!dispatched) {
    expect(record).toMatchObject({
      attempts: [],
      provider: null,
      request: null,
      response: null,
      cost: 0,
      usage: null,
    })
    expect([400, 401, 403, 404, 429, 200, 304]).toContain(expected.status)
    return
  }
  const provider = SCRIPTED[route.surface]
  const failure = expected.status === 502 ? 'unusable_answer' : null
  expect(record).toMatchObject({
    provider,
    attempts: [{ provider, upstreamModel: route.model, failure }],
  })
  const counts = [record.request, record.response].filter((count) => count !== null)
  for (const { inspected, uninspected, released, withheld } of counts as Array<Record<string, number>>) {
    expect(Number(inspected) + Number(uninspected)).toBe(Number(released) + Number(withheld))
  }
  const usage = record.usage as Record<string, number> | null
  // Prices of the demo models: a micro-credit for a token of input, five for one of output.
  expect(record.cost).toBe(usage === null ? 0 : Number(usage.input) + 5 * Number(usage.output))
}

describe('the records of an organization', () => {
  it('form a chain that verifies', async () => {
    const { ask } = administrator(gateway())
    await flush(gateway(), tenant)
    const result = await ask('GET', `${tenant.base}/audit/verify?limit=1000`)
    expect(result).toMatchObject({ ok: true, first_broken: null, has_more: false })
    expect(Number(result.verified)).toBeGreaterThanOrEqual(kinds.length)
    const chains = await ask<{ data: unknown[] }>('GET', `${tenant.base}/audit/chains`)
    expect(chains.data).toMatchObject([
      { organization_id: tenant.organizationId, sequence: result.to_sequence },
    ])
  })

  it('agree with usage and credits', async () => {
    const calls = (await auditEntries(gateway(), tenant)).filter(({ kind }) => kind === 'call')
    const used = calls.filter(({ record }) => record.usage !== null)
    const events = await readList<Record<string, unknown>>(gateway(), `${tenant.base}/usage/events`)
    expect(
      events.map((event) => [event.call_id, event.cost, event.output_tokens, event.input_tokens]),
    ).toEqual(
      used.map(({ id, record }) => {
        const { input, output } = record.usage as Record<string, number>
        return [id, record.cost, output, input]
      }),
    )
    const entries = await readList<{ amount: number }>(gateway(), `${tenant.base}/credits`)
    const { balance, reserved } = await credits(gateway(), tenant)
    expect(entries.reduce((sum, { amount }) => sum + amount, 0)).toBe(balance)
    expect(reserved).toBe(0)
    expect(balance).toBe(60_000 - calls.reduce((sum, { credits_settled }) => sum + credits_settled, 0))
    const totals = await readList<{ calls: number; cost: number }>(gateway(), `${tenant.base}/usage`)
    expect(totals.reduce((sum, { cost }) => sum + cost, 0)).toBe(60_000 - balance)
    expect(totals.reduce((sum, row) => sum + row.calls, 0)).toBe(used.length)
  })

  it('can be asked for by status, model, key and surface', async () => {
    const filters = [
      { status: '502' },
      { model: 'scripted-messages' },
      { key_id: tenant.keyId },
      { surface: 'models' },
    ]
    const all = await auditEntries(gateway(), tenant)
    for (const filter of filters) {
      const [[name, value] = ['', '']] = Object.entries(filter)
      const fitting = all.filter((entry) => String(entry[name as keyof AuditEntry]) === value)
      expect(fitting.length).toBeGreaterThan(0)
      const listed = await readList<AuditEntry>(
        gateway(),
        `${tenant.base}/audit`,
        filter as Record<string, string>,
      )
      expect(listed.map(({ id }) => id)).toEqual(fitting.map(({ id }) => id))
    }
  })
})
