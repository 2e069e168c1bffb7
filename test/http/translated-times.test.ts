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
  named,
  PAIRS,
  streamedText,
  type TranslatedPair,
} from './support/translated-pairs.ts'

/** Milliseconds, short enough to wait for, far enough apart to be told from each other. */
const TIMES = {
  UPSTREAM_CONNECT_TIMEOUT_MS: '700',
  STREAM_HEARTBEAT_MS: '100',
  STREAM_COMMIT_MS: '300',
  UPSTREAM_HEADERS_TIMEOUT_MS: '800',
  UPSTREAM_FIRST_EVENT_TIMEOUT_MS: '1000',
  UPSTREAM_EVENT_TIMEOUT_MS: '700',
  UPSTREAM_ANSWER_TIMEOUT_MS: '900',
  // Shorter than most streams here, so that leases are renewed.
  LEDGER_LEASE_MS: '400',
}

let address: StartedWorker
let tenant: Tenant

beforeAll(async () => {
  address = await startWorker(TIMES)
  tenant = await createTenant(address)
}, 60_000)
afterAll(() => address?.stop())

const bodyOf = (pair: TranslatedPair, text: string, more = {}) => JSON.stringify(pair.request(text, more))
const open = (pair: TranslatedPair, text: string, more = {}) =>
  openStream(
    address.baseUrl + pair.route.path,
    bearer(tenant.key),
    bodyOf(pair, text, { stream: true, ...more }),
  )
const call = (pair: TranslatedPair, text: string, more = {}) =>
  send(address.baseUrl + pair.route.path, {
    method: 'POST',
    headers: bearer(tenant.key),
    body: bodyOf(pair, text, more),
  })

const noAnswer = ({ route }: TranslatedPair, message: string) =>
  refusalBody(route.surface, { status: 502, code: 'upstream_empty_body', message })

describe.concurrent.each(named(PAIRS))('%s', (_, pair) => {
  const { route, upstream } = pair
  const heartbeat = heartbeatOf(route)
  const beats = (text: string) => text.split(heartbeat).length - 1
  const begun = [...upstream.opening, upstream.text('one ')]

  it("begins after a while without an event, with the caller's heartbeats", async () => {
    const signal = uniqueName('signal')
    const script = await registerScript(address, [
      { status: 200, headers: { 'content-type': 'text/event-stream' } },
      { waitForSignal: signal },
      { sse: [...begun, ...upstream.ending] },
    ])
    const startedAt = Date.now()
    const stream = await open(pair, script)
    expect(stream.status).toBe(200)
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(290)
    await stream.until((text) => beats(text) >= 3)
    expect(stream.text().replaceAll(heartbeat, '')).toBe('')
    await upstreamControl(address).release(signal)
    const all = await stream.end()
    expect(streamedText(all)).toBe('one ')
    expect(all.endsWith(endOf(route))).toBe(true)
  })

  it('tells in the stream what goes wrong after it began without an event', async () => {
    const signal = uniqueName('signal')
    const script = await registerScript(address, [
      { status: 200, headers: { 'content-type': 'text/event-stream' } },
      { waitForSignal: signal },
      { sse: [upstream.error('Overloaded')] },
    ])
    const stream = await open(pair, script)
    await upstreamControl(address).release(signal)
    expect((await stream.end()).replaceAll(heartbeat, '')).toBe(failureFrames(route, 'Overloaded'))
  })

  it('gives up an upstream that sends no first event', async () => {
    const text = marker()
    const stream = await open(pair, `${text} script:silent-stream`)
    const all = await stream.end()
    expect(all.replaceAll(heartbeat, '')).toBe(failureFrames(route, 'The upstream stopped sending.'))
    await seenRequest(address, text, ({ clientClosedAt }) => clientClosedAt !== null)
    const entry = await auditEntryOf(address, tenant, stream.headers['x-request-id'])
    expect(entry.record).toMatchObject({ status: 200, errorCode: 'stream_error', provenance: 'estimated' })
    expect(entry.record.flags).toContain('stream_timeout')
    expect(entry.credits_settled).toBeGreaterThan(0)
  })

  it('gives up an upstream that stops in the middle', async () => {
    const text = marker()
    const stream = await open(pair, `${text} script:stall`)
    await stream.until((received) => received.includes('scripted'))
    const pausedAt = stream.lastReceivedAt()
    const all = await stream.end()
    expect(all.endsWith(failureFrames(route, 'The upstream stopped sending.'))).toBe(true)
    expect(beats(all)).toBeGreaterThanOrEqual(3)
    expect(Date.now() - pausedAt).toBeGreaterThanOrEqual(600)
    await seenRequest(address, text, ({ clientClosedAt }) => clientClosedAt !== null)
  })

  it('does not take keep-alives of the upstream for progress', async () => {
    const stream = await open(pair, 'script:ping-only')
    const all = await stream.end()
    expect(all.endsWith(failureFrames(route, 'The upstream stopped sending.'))).toBe(true)
    // Heartbeats are the caller's, and none is handed on beside them.
    expect(all.includes('ping')).toBe(route.surface === 'messages')
  })

  it('answers 502, or ends the stream, where the upstream does not answer in time', async () => {
    const waits = `${marker()} script:slow-headers signal=${uniqueName('never')}`
    const message = 'The upstream did not answer in time.'
    const times = [true, false].map(async (stream) => {
      const answer = await call(pair, `${waits} ${stream}`, { stream })
      expect(answer.status).toBe(stream ? 200 : 502)
      if (stream) expect(answer.text.replaceAll(heartbeat, '')).toBe(failureFrames(route, message))
      else expect(jsonOf(answer)).toEqual(noAnswer(pair, message))
      await seenRequest(address, `${waits} ${stream}`, ({ clientClosedAt }) => clientClosedAt !== null)
      const { record } = await auditEntryOf(address, tenant, answer.headers['x-request-id'])
      expect(record).toMatchObject({ status: stream ? 200 : 502, provenance: 'estimated' })
      expect(record.attempts).toMatchObject([{ status: null, failure: 'timeout' }])
    })
    await Promise.all(times)
  })
})
