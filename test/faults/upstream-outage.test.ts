import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { type CallResult, callModel, errorOf, SCRIPTED_KINDS, streamEnded } from '../harness/model-calls.ts'
import { registerScript } from '../harness/upstream.ts'
import { type FaultyGateway, SHORT_TIMES, startFaultyGateway } from './support/faulty-gateway.ts'

let faulty: FaultyGateway
beforeAll(async () => {
  faulty = await startFaultyGateway()
})
afterAll(() => faulty?.stop())

/** Longer than any time-out of the upstream, with room for a busy machine. */
const BOUND_MS = 8_000

/** Result for a caller: an error before anything was sent, an error in the stream, or the answer. */
type Expected = 'bad_gateway' | 'stream_error' | 'answer'

interface Fault {
  name: string
  /** Name and words of a built-in script, or the steps of one. */
  script: string | Parameters<typeof registerScript>[1]
  whole: Expected
  stream: Expected
}

const FAULTS: Fault[] = [
  {
    name: 'resets before its headers',
    script: [{ destroy: true }],
    whole: 'bad_gateway',
    stream: 'bad_gateway',
  },
  {
    name: 'never sends headers',
    script: 'slow-headers signal=never',
    whole: 'bad_gateway',
    // Its heartbeats began before the time for headers was over.
    stream: 'stream_error',
  },
  { name: 'sends its headers late', script: 'slow-headers delay=700', whole: 'answer', stream: 'answer' },
  { name: 'sends an empty body', script: 'empty-body', whole: 'bad_gateway', stream: 'bad_gateway' },
  { name: 'sends no JSON', script: 'not-json', whole: 'bad_gateway', stream: 'bad_gateway' },
  { name: 'redirects', script: 'redirect', whole: 'bad_gateway', stream: 'bad_gateway' },
  { name: 'sends an empty stream', script: 'empty-stream', whole: 'bad_gateway', stream: 'bad_gateway' },
  {
    name: 'sends headers and nothing',
    script: 'silent-stream',
    whole: 'stream_error',
    stream: 'stream_error',
  },
  { name: 'resets in the middle', script: 'mid-stream-cut', whole: 'bad_gateway', stream: 'stream_error' },
  { name: 'ends in the middle', script: 'mid-stream-end', whole: 'bad_gateway', stream: 'stream_error' },
  { name: 'stops sending', script: 'stall', whole: 'bad_gateway', stream: 'stream_error' },
  { name: 'sends an error', script: 'mid-stream-error', whole: 'answer', stream: 'stream_error' },
]

function expectOutcome(result: CallResult, expected: Expected): void {
  const { kind, status, end, text } = result
  expect(end).toBe('complete')
  expect(result.milliseconds).toBeLessThan(BOUND_MS)
  if (expected === 'bad_gateway') {
    const nested = { type: 'server_error', code: 'upstream_empty_body' }
    expect(status).toBe(502)
    expect(errorOf(result)).toMatchObject(kind.envelope === 'nested' ? nested : { type: 'api_error' })
  } else if (expected === 'answer') {
    expect(status).toBe(200)
    expect(kind.stream ? streamEnded(result) : errorOf(result) === null).toBe(true)
  } else {
    expect(status).toBe(200)
    expect(text.match(/"type":"(server_error|api_error|overloaded_error)"/g)).toHaveLength(1)
    expect(streamEnded(result)).toBe(false)
    if (kind.envelope === 'nested') expect(text).toMatch(/data: \[DONE\]\n\n$/)
    else expect(text).toMatch(/(^|\n)event: error\ndata: .*\n\n$/)
  }
}

describe('when the upstream', () => {
  it.each(FAULTS)(
    '$name, every surface reports it in time and settles',
    async ({ script, whole, stream }) => {
      const { gateway } = faulty
      const tenant = await createBusyTenant(gateway, 1_000_000_000)
      const text = typeof script === 'string' ? `script:${script}` : await registerScript(gateway, script)
      const options = { key: tenant.key, text, boundMilliseconds: BOUND_MS + 2_000 }
      const results = await Promise.all(SCRIPTED_KINDS.map((kind) => callModel(gateway, kind, options)))
      for (const result of results) expectOutcome(result, result.kind.stream ? stream : whole)
      const { calls } = await expectWholeLedger(gateway, tenant, results)
      expect(calls).toHaveLength(results.length)
      for (const result of results) {
        expect(calls.find(({ requestId }) => requestId === result.requestId)?.status).toBe(result.status)
      }
    },
  )

  it.each([
    ['is away', 'SIGKILL', 500],
    ['hangs', 'SIGSTOP', SHORT_TIMES.UPSTREAM_HEADERS_TIMEOUT_MS],
  ] as const)('%s, every surface says so in time', async (_, signal, least) => {
    const { gateway } = faulty
    const tenant = await createBusyTenant(gateway, 1_000_000_000)
    if (signal === 'SIGKILL') await gateway.killStandIn('modelUpstream')
    else gateway.processes.modelUpstream.signal('SIGSTOP')
    const options = { key: tenant.key, text: 'anybody there?', boundMilliseconds: BOUND_MS + 2_000 }
    const results = await Promise.all(SCRIPTED_KINDS.map((kind) => callModel(gateway, kind, options)))
    if (signal === 'SIGKILL') await gateway.startStandIn('modelUpstream')
    else gateway.processes.modelUpstream.signal('SIGCONT')
    for (const result of results) {
      const isBegun = signal === 'SIGSTOP' && result.kind.stream
      expectOutcome(result, isBegun ? 'stream_error' : 'bad_gateway')
    }
    if (signal === 'SIGSTOP')
      expect(Math.min(...results.map(({ milliseconds }) => milliseconds))).toBeGreaterThan(least - 50)
    const { calls } = await expectWholeLedger(gateway, tenant, results)
    expect(calls.map(({ status }) => status).sort()).toEqual(results.map(({ status }) => status).sort())
    // An unreachable upstream has read nothing and charges nothing; a silent one may have read everything.
    expect(calls.every(({ cost }) => (signal === 'SIGKILL' ? cost === 0 : cost > 0))).toBe(true)
    const after = await callModel(gateway, SCRIPTED_KINDS[0] as CallResult['kind'], options)
    expect(after.status).toBe(200)
  })
})
