import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import {
  ANSWER_COST,
  answered,
  callRouted,
  createRoutedModel,
  inTurn,
  type RoutedModel,
  recordedCall,
  routedRequest,
} from '../harness/routed-model.ts'
import type { Tenant } from '../harness/tenant.ts'
import type { ScriptStep } from '../harness/upstream.ts'
import { startFaultProxy } from './support/fault-proxy.ts'
import { type FaultyGateway, startFaultyGateway } from './support/faulty-gateway.ts'
import { startFullListener } from './support/full-listener.ts'

/** In milliseconds, far enough apart to be told from each other. */
const TIMES = {
  UPSTREAM_CONNECT_TIMEOUT_MS: 300,
  UPSTREAM_HEADERS_TIMEOUT_MS: 900,
  UPSTREAM_FIRST_EVENT_TIMEOUT_MS: 600,
  UPSTREAM_EVENT_TIMEOUT_MS: 600,
  UPSTREAM_ANSWER_TIMEOUT_MS: 1_200,
  // Longer than the limits above: while the first event is awaited, nothing may be sent to the caller.
  STREAM_COMMIT_MS: 5_000,
}

let faulty: FaultyGateway
let tenant: Tenant
/** Addresses that never complete a connection, accept it without an answer, and refuse it. */
const hosts = { full: '', silent: '', gone: 'http://127.0.0.1:1' }
const cleanUps: Array<() => Promise<void>> = []

beforeAll(async () => {
  const [full, silent] = await Promise.all([startFullListener(), startFaultProxy(hosts.gone)])
  cleanUps.push(full.close, silent.close)
  await silent.become('hang')
  hosts.full = `http://127.0.0.1:${full.port}`
  hosts.silent = silent.url
  const allowed = Object.values(hosts).map((url) => new URL(url).host)
  faulty = await startFaultyGateway({ ...TIMES, EGRESS_ALLOW: allowed.join(',') })
  tenant = await createBusyTenant(faulty.gateway, 1_000_000_000)
})
afterAll(async () => {
  await faulty?.stop()
  await Promise.all(cleanUps.map((cleanUp) => cleanUp()))
})
afterEach(() => faulty.redis.become('pass'))

const modelAt = (...urls: Array<string | undefined>) =>
  createRoutedModel(
    faulty.gateway,
    urls.map(() => 'openai-compatible'),
    urls,
  )

async function call(model: RoutedModel, script: string, more: object = {}) {
  const { gateway } = faulty
  const startedAt = Date.now()
  const answer = await callRouted(gateway, tenant, routedRequest('chat', model, script, more))
  const milliseconds = Date.now() - startedAt
  return { answer, milliseconds, ...(await recordedCall(gateway, tenant, model, answer)) }
}

const good = (stream: boolean) => inTurn(faulty.gateway, answered('chat', 'here', stream))
const FORMS: Array<[name: string, more: { stream: boolean; padding?: string }]> = [
  ['a whole answer', { stream: false }],
  ['a stream', { stream: true }],
  ['a large body', { stream: false, padding: 'x'.repeat(3 * 1024 * 1024) }],
]

describe.each(FORMS)('for %s, a host that', (_, more) => {
  it('swallows connections is left after the time to connect, and for a while', async () => {
    const model = await modelAt(hosts.full, undefined)
    const first = await call(model, await good(more.stream), more)
    expect(first.answer.text).toContain('here')
    expect(first.attempts).toEqual(['0 connect_timeout', '1 200'])
    expect(first.rows[0]?.durationMilliseconds).toBeGreaterThanOrEqual(TIMES.UPSTREAM_CONNECT_TIMEOUT_MS - 5)
    expect(first.rows[0]?.durationMilliseconds).toBeLessThan(TIMES.UPSTREAM_HEADERS_TIMEOUT_MS)
    // It never had the request.
    expect(first.record).toMatchObject({ provenance: 'reported', cost: ANSWER_COST })
    const second = await call(model, await good(more.stream), more)
    expect(second.attempts).toEqual(['1 200'])
  })

  it('takes connections and says nothing is left after the time to answer, and may charge', async () => {
    const model = await modelAt(hosts.silent, undefined)
    const script = await good(more.stream)
    const { answer, attempts, rows, record } = await call(model, script, more)
    expect(answer.text).toContain('here')
    expect(attempts).toEqual(['0 timeout', '1 200'])
    const limit = more.stream ? TIMES.UPSTREAM_HEADERS_TIMEOUT_MS : TIMES.UPSTREAM_ANSWER_TIMEOUT_MS
    expect(rows[0]?.durationMilliseconds).toBeGreaterThanOrEqual(limit - 5)
    expect(record.provenance).toBe('estimated')
    const bytes = routedRequest('chat', model, script, more).body.length
    const read = Math.min(Math.ceil(bytes / 3), 100_000)
    expect(record.cost).toBe(ANSWER_COST + read)
    expect((await call(model, await good(more.stream), more)).attempts).toEqual(['1 200'])
  })

  it('refuses connections is left at once, and for a while', async () => {
    const model = await modelAt(hosts.gone, undefined)
    const { answer, attempts, record } = await call(model, await good(more.stream), more)
    expect(answer.text).toContain('here')
    expect(attempts).toEqual(['0 unreachable', '1 200'])
    expect(record.cost).toBe(ANSWER_COST)
    expect((await call(model, await good(more.stream), more)).attempts).toEqual(['1 200'])
    // If all routes are down, they are tried nevertheless.
    const both = await call(await modelAt(hosts.gone, hosts.full), 'anybody?', more)
    expect(both.answer.status).toBe(502)
    expect(both.attempts).toEqual(['0 unreachable', '1 connect_timeout'])
    expect(both.record).toMatchObject({ errorCode: 'upstream_empty_body', cost: 0 })
  })
})

describe('a model with one route', () => {
  it.each(FORMS)('has the time to connect as well, for %s', async (_, more) => {
    const { answer, attempts, milliseconds, record } = await call(await modelAt(hosts.full), 'anybody?', more)
    expect(answer.status).toBe(502)
    expect(attempts).toEqual(['0 connect_timeout'])
    expect(milliseconds).toBeLessThan(TIMES.UPSTREAM_HEADERS_TIMEOUT_MS)
    expect(record.cost).toBe(0)
  })
})

describe('an upstream that has begun to answer', () => {
  const streamHead: ScriptStep = { headers: { 'content-type': 'text/event-stream' } }
  const never: ScriptStep = { waitMilliseconds: 20_000 }

  it('is left when the first event of its stream is late', async () => {
    const script = await inTurn(
      faulty.gateway,
      [streamHead, { sse: [': thinking\n\n'] }, never],
      answered('chat', 'here', true),
    )
    const { answer, attempts, record } = await call(await modelAt(undefined, undefined), script, {
      stream: true,
    })
    expect(answer.text).toContain('here')
    expect(answer.text).not.toContain('thinking')
    expect(attempts).toEqual(['0 200 stream_timeout', '1 200'])
    expect(record.provenance).toBe('estimated')
  })

  it('is left when the rest of a whole answer is late', async () => {
    const head: ScriptStep = { headers: { 'content-type': 'application/json' } }
    const script = await inTurn(
      faulty.gateway,
      [head, { chunk: '{"id":' }, never],
      answered('chat', 'here', false),
    )
    const { answer, attempts, record } = await call(await modelAt(undefined, undefined), script)
    expect(answer.text).toContain('here')
    expect(attempts).toEqual(['0 200 timeout', '1 200'])
    expect(record.provenance).toBe('estimated')
  })

  it('is not left between two events: the caller has the first one, and gets an error', async () => {
    const begun = (answered('chat', 'the beginning', true)[1] as { sse: string[] }).sse.slice(0, 1)
    const script = await inTurn(
      faulty.gateway,
      [streamHead, { sse: begun }, never],
      answered('chat', 'here', true),
    )
    const { answer, attempts, record } = await call(await modelAt(undefined, undefined), script, {
      stream: true,
    })
    expect(answer.text).toContain('the beginning')
    expect(answer.text).toContain('The upstream stopped sending.')
    expect(answer.text).not.toContain('here')
    expect(attempts).toEqual(['0 200'])
    expect(record.flags).toContain('stream_timeout')
  })
})
