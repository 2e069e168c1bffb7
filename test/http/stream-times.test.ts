import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { auditEntryOf } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

/** Milliseconds, short enough to wait for, far enough apart to be told from each other. */
const TIMES = {
  STREAM_HEARTBEAT_MS: '150',
  STREAM_COMMIT_MS: '400',
  UPSTREAM_HEADERS_TIMEOUT_MS: '1200',
  UPSTREAM_FIRST_EVENT_TIMEOUT_MS: '1500',
  UPSTREAM_EVENT_TIMEOUT_MS: '1000',
  UPSTREAM_ANSWER_TIMEOUT_MS: '1300',
  // Two seconds are not enough to renew a lease in, so every stream here renews it on its way.
  LEDGER_LEASE_MS: '900',
}

let address: StartedWorker
let tenant: Tenant

beforeAll(async () => {
  address = await startWorker(TIMES)
  tenant = await createTenant(address)
}, 60_000)
afterAll(() => address?.stop())

const bodyOf = (route: ModelRoute, text: string, more = {}) => JSON.stringify(route.request(text, more))
const open = (route: ModelRoute, text: string) =>
  openStream(address.baseUrl + route.path, bearer(tenant.key), bodyOf(route, text, { stream: true }))
const call = (route: ModelRoute, text: string, more = {}) =>
  send(address.baseUrl + route.path, {
    method: 'POST',
    headers: bearer(tenant.key),
    body: bodyOf(route, text, more),
  })

const HEARTBEAT = {
  chat_completions: ': heartbeat\n\n',
  messages: 'event: ping\ndata: {"type":"ping"}\n\n',
}
const FAILED = {
  chat_completions:
    'event: error\ndata: {"error":{"message":"The upstream stopped sending.","type":"server_error","code":"stream_error"}}\n\ndata: [DONE]\n\n',
  messages:
    'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"The upstream stopped sending."}}\n\n',
}
const beats = (text: string, route: ModelRoute) => text.split(HEARTBEAT[route.surface]).length - 1
const noAnswer = (route: ModelRoute, message: string) =>
  refusalBody(route.surface, { status: 502, code: 'upstream_empty_body', message })

// Legacy completions stream through the same code as chat completions.
const routes = MODEL_ROUTES.filter(({ name }) => name === 'chat completions' || name === 'messages')
const generating = routes.map((route) => [route.name, route] as const)

describe.each(generating)('%s', (_, route) => {
  it.concurrent('begins after a while without an event, and keeps the connection open until there is one', async () => {
    const signal = uniqueName('signal')
    const startedAt = Date.now()
    const stream = await open(route, `script:silent-stream signal=${signal}`)
    expect(stream.status).toBe(200)
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(390)
    expect(stream.headers['content-type']).toMatch(/^text\/event-stream/)
    await stream.until((text) => beats(text, route) >= 3)
    await upstreamControl(address).release(signal)
    // What the script sends then is no whole answer: it ends as one that was cut off.
    expect(await stream.end()).toContain('event: error')
  })

  it.concurrent('gives up an upstream that sends no first event', async () => {
    const text = marker()
    const stream = await open(route, `${text} script:silent-stream`)
    const all = await stream.end()
    expect(all.replaceAll(HEARTBEAT[route.surface], '')).toBe(FAILED[route.surface])
    expect(beats(all, route)).toBeGreaterThanOrEqual(3)
    await seenRequest(address, text, ({ clientClosedAt }) => clientClosedAt !== null)
    const entry = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(entry.record).toMatchObject({ status: 200, errorCode: 'stream_error', provenance: 'estimated' })
    expect(entry.record.flags).toContain('stream_timeout')
    // The upstream has read the request, so its input is charged.
    expect(entry.credits_settled).toBeGreaterThan(0)
  })

  it.concurrent('gives up an upstream that stops in the middle', async () => {
    const text = marker()
    const stream = await open(route, `${text} script:stall`)
    await stream.until((received) => received.includes('scripted'))
    const pausedAt = stream.lastReceivedAt()
    const all = await stream.end()
    expect(all.endsWith(FAILED[route.surface])).toBe(true)
    expect(beats(all, route)).toBeGreaterThanOrEqual(3)
    expect(Date.now() - pausedAt).toBeGreaterThanOrEqual(900)
    await seenRequest(address, text, ({ clientClosedAt }) => clientClosedAt !== null)
  })

  it.concurrent('goes on with a stream that stops for less than that', async () => {
    const signal = uniqueName('signal')
    const stream = await open(route, `script:stall signal=${signal}`)
    await stream.until((text) => beats(text, route) >= 2)
    await upstreamControl(address).release(signal)
    const all = await stream.end()
    expect(all).toContain('🦉')
    expect(all).not.toContain('error')
    expect(all.trimEnd()).toMatch(route.surface === 'messages' ? /message_stop"}$/ : /\[DONE\]$/)
  })

  it.concurrent('does not take heartbeats of the upstream for progress', async () => {
    const stream = await open(route, 'script:ping-only')
    expect((await stream.end()).endsWith(FAILED[route.surface])).toBe(true)
  })

  it.concurrent('keeps a slow but steady stream open for longer than any of these times', async () => {
    const stream = await open(route, 'script:long-stream tokens=12 delay=300')
    const all = await stream.end()
    expect(all.match(/ word/g)).toHaveLength(12)
    expect(beats(all, route)).toBeGreaterThanOrEqual(3)
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: null, provenance: 'reported' })
  })

  it.concurrent('ends an answer that is complete though the upstream keeps the connection open', async () => {
    const sse = completeStream(route)
    const script = await registerScript(address, [{ sse }, { waitForSignal: uniqueName('never') }])
    const stream = await open(route, script)
    expect(await stream.end()).toBe(sse.filter((frame) => !frame.includes('"choices":[]')).join(''))
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: null, provenance: 'reported' })
  })

  it.concurrent('answers 502 where the upstream does not answer a whole request in time', async () => {
    const waits = `${marker()} script:slow-headers signal=${uniqueName('never')}`
    const startedAt = Date.now()
    const answer = await call(route, waits)
    expect(jsonOf(answer)).toEqual(noAnswer(route, 'The upstream did not answer in time.'))
    expect(answer.status).toBe(502)
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(1_000)
    expect(Date.now() - startedAt).toBeLessThan(4_000)
    await seenRequest(address, waits, ({ clientClosedAt }) => clientClosedAt !== null)
    const entry = await auditEntryOf(address, tenant, answer.headers['x-request-id'])
    expect(entry.record).toMatchObject({ status: 502, provenance: 'estimated' })
    expect(entry.record.attempts).toMatchObject([{ status: null, failure: 'timeout' }])
  })

  it.concurrent('keeps a connection open whose upstream sends no headers, until they come', async () => {
    const signal = uniqueName('signal')
    const startedAt = Date.now()
    const stream = await open(route, `script:slow-headers signal=${signal}`)
    expect(stream.status).toBe(200)
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(390)
    expect(stream.headers['content-type']).toMatch(/^text\/event-stream/)
    expect(stream.headers['cache-control']).toBe('no-cache, no-transform')
    await stream.until((text) => beats(text, route) >= 3)
    await upstreamControl(address).release(signal)
    const all = await stream.end()
    expect(all).toContain('🦉')
    expect(all).not.toContain('error')
    expect(all.trimEnd()).toMatch(route.surface === 'messages' ? /message_stop"}$/ : /\[DONE\]$/)
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: null, provenance: 'reported' })
  })

  it.concurrent('ends a stream in band whose upstream never sends headers', async () => {
    const waits = `${marker()} script:slow-headers signal=${uniqueName('never')}`
    const stream = await open(route, waits)
    const all = await stream.end()
    const failed = FAILED[route.surface].replace(
      'The upstream stopped sending.',
      'The upstream did not answer in time.',
    )
    expect(all.replaceAll(HEARTBEAT[route.surface], '')).toBe(failed)
    expect(beats(all, route)).toBeGreaterThanOrEqual(3)
    await seenRequest(address, waits, ({ clientClosedAt }) => clientClosedAt !== null)
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: 'stream_error', provenance: 'estimated' })
    expect(record.attempts).toMatchObject([{ status: null, failure: 'timeout' }])
  })

  it.concurrent("sends an upstream's late refusal in band", async () => {
    const signal = uniqueName('signal')
    const body = JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Too late.' } })
    const headers = { 'content-type': 'application/json' }
    const script = await registerScript(address, [{ waitForSignal: signal }, { status: 503, headers, body }])
    const stream = await open(route, script)
    await upstreamControl(address).release(signal)
    const failed = FAILED[route.surface]
      .replace('The upstream stopped sending.', 'Too late.')
      .replace('api_error', 'overloaded_error')
    expect((await stream.end()).replaceAll(HEARTBEAT[route.surface], '')).toBe(failed)
    const entry = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(entry.record).toMatchObject({ status: 200, errorCode: 'stream_error' })
    expect(entry.credits_settled).toBe(0)
  })

  it.concurrent('stops an upstream without headers when the caller leaves', async () => {
    const waits = `${marker()} script:slow-headers signal=${uniqueName('never')}`
    const stream = await open(route, waits)
    await stream.until((text) => beats(text, route) >= 1)
    stream.leave()
    const leftAt = Date.now()
    const seen = await seenRequest(address, waits, ({ clientClosedAt }) => clientClosedAt !== null)
    expect((seen.clientClosedAt ?? 0) - leftAt).toBeLessThan(400)
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 499, errorCode: 'client_left' })
  })

  it.concurrent('answers 502 where a whole answer stops in the middle', async () => {
    const answer = await call(route, 'script:stall')
    expect(jsonOf(answer)).toEqual(noAnswer(route, 'The upstream did not answer in time.'))
    expect(answer.status).toBe(502)
  })
})

/** All events of a stream with its end; on chat completions the usage that nobody asked for among them. */
const completeStream = (route: ModelRoute): string[] =>
  route.surface === 'messages'
    ? [
        'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3}}}\n\n',
        'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":5}}\n\n',
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      ]
    : [
        'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n',
        'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}}\n\n',
        'data: [DONE]\n\n',
      ]

describe('a first event that is late', () => {
  let patient: StartedWorker
  beforeAll(async () => {
    patient = await startWorker({ STREAM_COMMIT_MS: '5000', UPSTREAM_FIRST_EVENT_TIMEOUT_MS: '300' })
  })
  afterAll(() => patient?.stop())

  it('is told as 502 when nothing was sent to the caller yet', async () => {
    const { key } = await createTenant(patient)
    for (const [, route] of generating) {
      const body = bodyOf(route, 'script:silent-stream', { stream: true })
      const answer = await send(patient.baseUrl + route.path, { method: 'POST', headers: bearer(key), body })
      expect(jsonOf(answer)).toEqual(noAnswer(route, 'The upstream stopped sending.'))
      expect(answer.status).toBe(502)
    }
  })
})
