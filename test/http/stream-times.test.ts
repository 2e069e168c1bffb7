import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { auditEntryOf } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import {
  endOf,
  failureFrames,
  heartbeatOf,
  NATIVE_PAIRS,
  named,
  PAIRS,
  streamedText,
  type TranslatedPair,
} from './support/translated-pairs.ts'

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

const bodyOf = (pair: TranslatedPair, text: string, more = {}) => JSON.stringify(pair.request(text, more))
const open = (pair: TranslatedPair, text: string) =>
  openStream(address.baseUrl + pair.route.path, bearer(tenant.key), bodyOf(pair, text, { stream: true }))
const call = (pair: TranslatedPair, text: string, more = {}) =>
  send(address.baseUrl + pair.route.path, {
    method: 'POST',
    headers: bearer(tenant.key),
    body: bodyOf(pair, text, more),
  })

const beats = (text: string, { route }: TranslatedPair) => text.split(heartbeatOf(route)).length - 1
const withoutBeats = (text: string, { route }: TranslatedPair) => text.replaceAll(heartbeatOf(route), '')
const stopped = ({ route }: TranslatedPair) => failureFrames(route, 'The upstream stopped sending.')
const noAnswer = ({ route }: TranslatedPair, message: string) =>
  refusalBody(route.surface, { status: 502, code: 'upstream_empty_body', message })

// Legacy completions stream through the same code as chat completions.
const pairs = named([...NATIVE_PAIRS, ...PAIRS])

describe.concurrent.each(pairs)('%s', (_, pair) => {
  const { route, upstream } = pair
  it('begins after a while without an event, and keeps the connection open until there is one', async () => {
    const signal = uniqueName('signal')
    const script = await registerScript(address, [
      { status: 200, headers: { 'content-type': 'text/event-stream' } },
      { waitForSignal: signal },
      { sse: [...upstream.opening, upstream.text('one '), ...upstream.ending] },
    ])
    const startedAt = Date.now()
    const stream = await open(pair, script)
    expect(stream.status).toBe(200)
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(390)
    expect(stream.headers['content-type']).toMatch(/^text\/event-stream/)
    await stream.until((text) => beats(text, pair) >= 3)
    expect(withoutBeats(stream.text(), pair)).toBe('')
    await upstreamControl(address).release(signal)
    const all = await stream.end()
    expect(streamedText(all)).toBe('one ')
    expect(all.endsWith(endOf(route))).toBe(true)
  })

  it('sends in the stream what fails after it began without an event', async () => {
    const signal = uniqueName('signal')
    const script = await registerScript(address, [
      { status: 200, headers: { 'content-type': 'text/event-stream' } },
      { waitForSignal: signal },
      { sse: [upstream.error('Overloaded')] },
    ])
    const stream = await open(pair, script)
    await upstreamControl(address).release(signal)
    const sent = withoutBeats(await stream.end(), pair)
    // An upstream of the same protocol has its own error forwarded.
    if (PAIRS.includes(pair)) expect(sent).toBe(failureFrames(route, 'Overloaded'))
    else expect(sent).toMatch(/^(event: error\n)?data: .*"Overloaded"/)
  })

  it('gives up an upstream that sends no first event', async () => {
    const text = marker()
    const stream = await open(pair, `${text} script:silent-stream`)
    const all = await stream.end()
    expect(withoutBeats(all, pair)).toBe(stopped(pair))
    expect(beats(all, pair)).toBeGreaterThanOrEqual(3)
    await seenRequest(address, text, ({ clientClosedAt }) => clientClosedAt !== null)
    const entry = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(entry.record).toMatchObject({ status: 200, errorCode: 'stream_error', provenance: 'estimated' })
    expect(entry.record.flags).toContain('stream_timeout')
    // The upstream has read the request, so its input is charged.
    expect(entry.credits_settled).toBeGreaterThan(0)
  })

  it('gives up an upstream that stops in the middle', async () => {
    const text = marker()
    const stream = await open(pair, `${text} script:stall`)
    await stream.until((received) => received.includes('scripted'))
    const pausedAt = stream.lastReceivedAt()
    const all = await stream.end()
    expect(all.endsWith(stopped(pair))).toBe(true)
    expect(beats(all, pair)).toBeGreaterThanOrEqual(3)
    expect(Date.now() - pausedAt).toBeGreaterThanOrEqual(900)
    await seenRequest(address, text, ({ clientClosedAt }) => clientClosedAt !== null)
  })

  it('goes on with a stream that stops for less than that', async () => {
    const signal = uniqueName('signal')
    const stream = await open(pair, `script:stall signal=${signal}`)
    await stream.until((text) => beats(text, pair) >= 2)
    await upstreamControl(address).release(signal)
    const all = await stream.end()
    expect(all).toContain('🦉')
    expect(all).not.toContain('error')
    expect(all.endsWith(endOf(route))).toBe(true)
  })

  it('does not take heartbeats of the upstream for progress', async () => {
    const stream = await open(pair, 'script:ping-only')
    const all = await stream.end()
    expect(all.endsWith(stopped(pair))).toBe(true)
    // Heartbeats have the form of the caller's protocol.
    expect(all.includes('ping')).toBe(route.surface === 'messages')
  })

  it('keeps a slow but steady stream open for longer than any of these times', async () => {
    const stream = await open(pair, 'script:long-stream tokens=12 delay=300')
    const all = await stream.end()
    expect(all.match(/ word/g)).toHaveLength(12)
    expect(beats(all, pair)).toBeGreaterThanOrEqual(3)
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: null, provenance: 'reported' })
  })

  it('ends an answer that is complete though the upstream keeps the connection open', async () => {
    const sse = [...upstream.opening, upstream.text('one '), ...upstream.ending]
    const script = await registerScript(address, [{ sse }, { waitForSignal: uniqueName('never') }])
    const stream = await open(pair, script)
    const all = await stream.end()
    expect(streamedText(all)).toBe('one ')
    expect(all.endsWith(endOf(route))).toBe(true)
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: null, provenance: 'reported' })
  })

  it('answers 502 where the upstream does not answer a whole request in time', async () => {
    const waits = `${marker()} script:slow-headers signal=${uniqueName('never')}`
    const startedAt = Date.now()
    const answer = await call(pair, waits)
    expect(jsonOf(answer)).toEqual(noAnswer(pair, 'The upstream did not answer in time.'))
    expect(answer.status).toBe(502)
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(1_000)
    expect(Date.now() - startedAt).toBeLessThan(4_000)
    await seenRequest(address, waits, ({ clientClosedAt }) => clientClosedAt !== null)
    const entry = await auditEntryOf(address, tenant, answer.headers['x-request-id'])
    expect(entry.record).toMatchObject({ status: 502, provenance: 'estimated' })
    expect(entry.record.attempts).toMatchObject([{ status: null, failure: 'timeout' }])
  })

  it('keeps a connection open whose upstream sends no headers, until they come', async () => {
    const signal = uniqueName('signal')
    const startedAt = Date.now()
    const stream = await open(pair, `script:slow-headers signal=${signal}`)
    expect(stream.status).toBe(200)
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(390)
    expect(stream.headers['content-type']).toMatch(/^text\/event-stream/)
    expect(stream.headers['cache-control']).toBe('no-cache, no-transform')
    await stream.until((text) => beats(text, pair) >= 3)
    await upstreamControl(address).release(signal)
    const all = await stream.end()
    expect(all).toContain('🦉')
    expect(all).not.toContain('error')
    expect(all.endsWith(endOf(route))).toBe(true)
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: null, provenance: 'reported' })
  })

  it('ends a stream in band whose upstream never sends headers', async () => {
    const waits = `${marker()} script:slow-headers signal=${uniqueName('never')}`
    const stream = await open(pair, waits)
    const all = await stream.end()
    const failed = failureFrames(route, 'The upstream did not answer in time.')
    expect(withoutBeats(all, pair)).toBe(failed)
    expect(beats(all, pair)).toBeGreaterThanOrEqual(3)
    await seenRequest(address, waits, ({ clientClosedAt }) => clientClosedAt !== null)
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: 'stream_error', provenance: 'estimated' })
    expect(record.attempts).toMatchObject([{ status: null, failure: 'timeout' }])
  })

  it("sends an upstream's late refusal in band", async () => {
    const signal = uniqueName('signal')
    const body = JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Too late.' } })
    const headers = { 'content-type': 'application/json' }
    const script = await registerScript(address, [{ waitForSignal: signal }, { status: 503, headers, body }])
    const stream = await open(pair, script)
    await upstreamControl(address).release(signal)
    const failed = failureFrames(route, 'Too late.').replace('api_error', 'overloaded_error')
    expect(withoutBeats(await stream.end(), pair)).toBe(failed)
    const entry = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(entry.record).toMatchObject({ status: 200, errorCode: 'stream_error' })
    expect(entry.credits_settled).toBe(0)
  })

  it('stops an upstream without headers when the caller leaves', async () => {
    const waits = `${marker()} script:slow-headers signal=${uniqueName('never')}`
    const stream = await open(pair, waits)
    await stream.until((text) => beats(text, pair) >= 1)
    stream.leave()
    const leftAt = Date.now()
    const seen = await seenRequest(address, waits, ({ clientClosedAt }) => clientClosedAt !== null)
    expect((seen.clientClosedAt ?? 0) - leftAt).toBeLessThan(400)
    const { record } = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(record).toMatchObject({ status: 499, errorCode: 'client_left' })
  })

  it('answers 502 where a whole answer stops in the middle', async () => {
    const answer = await call(pair, 'script:stall')
    expect(jsonOf(answer)).toEqual(noAnswer(pair, 'The upstream did not answer in time.'))
    expect(answer.status).toBe(502)
  })
})

describe('a first event that is late', () => {
  let patient: StartedWorker
  beforeAll(async () => {
    patient = await startWorker({ STREAM_COMMIT_MS: '5000', UPSTREAM_FIRST_EVENT_TIMEOUT_MS: '300' })
  })
  afterAll(() => patient?.stop())

  it('is told as 502 when nothing was sent to the caller yet', async () => {
    const { key } = await createTenant(patient)
    for (const [, pair] of pairs) {
      const { route } = pair
      const body = bodyOf(pair, 'script:silent-stream', { stream: true })
      const answer = await send(patient.baseUrl + route.path, { method: 'POST', headers: bearer(key), body })
      expect(jsonOf(answer)).toEqual(noAnswer(pair, 'The upstream stopped sending.'))
      expect(answer.status).toBe(502)
    }
  })
})
