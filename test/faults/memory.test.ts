import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cpuMicroseconds } from '../../scripts/bench/process-usage.ts'
import { upstreamControl } from '../harness/gateway.ts'
import { type Answer, send } from '../harness/send.ts'
import { bearer } from '../harness/tenant.ts'
import { marker, type UpstreamRequest } from '../harness/upstream.ts'
import {
  chatOf,
  DISTINCT_NAMES,
  LARGEST_BODY_BYTES,
  MANY_VALUES,
  TEXTS_AND_NAMES,
} from './support/large-bodies.ts'
import {
  type MeasuredGateway,
  MOST_ABOVE_IDLE,
  megabytes,
  startMeasured,
} from './support/measured-gateway.ts'
import { TELLS_MEMORY } from './support/resident-memory.ts'

/** Times the CPU time of a body of the same size that is one text. */
const MOST_TIMES_PLAIN = 16

const post = ({ gateway, tenant }: MeasuredGateway, body: Buffer, chunked = false): Promise<Answer> =>
  send(`${gateway.baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: bearer(tenant.key),
    body,
    chunked,
  })

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** Sends bodies at once and checks that they arrive as they were sent. @returns the peak above idle, in bytes. */
async function peakOf(measured: MeasuredGateway, bodies: Buffer[], chunked: boolean): Promise<number> {
  const control = upstreamControl(measured.gateway)
  const before = await control.lastRequest()
  const { peak, result } = await measured.memory.peakOf(() =>
    Promise.all(bodies.map((body) => post(measured, body, chunked))),
  )
  for (const answer of result) expect(answer.status, answer.text.slice(0, 300)).toBe(200)
  const seen = (await control.requests(before)) as UpstreamRequest[]
  const digests = seen.map(({ bodySha256 }) => bodySha256)
  expect(digests.sort()).toEqual(bodies.map(sha256).sort())
  return peak - measured.idle
}

describe.skipIf(!TELLS_MEMORY)('memory above idle', () => {
  let measured: MeasuredGateway
  beforeAll(async () => {
    measured = await startMeasured()
  })
  afterAll(() => measured?.gateway.stop())

  // The caller's own stream options are there, so that these bodies pass as they are.
  const STREAM = '"stream":true,"stream_options":{"include_usage":true},'
  const large = (more = '') => [chatOf(LARGEST_BODY_BYTES, marker(), more)]
  const ten = () => Array.from({ length: 10 }, () => chatOf(5_000_000, marker()))
  const loads: Array<[string, () => Buffer[], boolean]> = [
    ['a body of 50 MB, declared', large, false],
    ['a body of 50 MB whose answer is streamed, declared', () => large(STREAM), false],
    ['a body of 50 MB, chunked', large, true],
    ['a body of 50 MB whose answer is streamed, chunked', () => large(STREAM), true],
    ['ten bodies of 5 MB at once, declared', ten, false],
    ['ten bodies of 5 MB at once, chunked', ten, true],
  ]

  it.each(loads)('%s', async (name, bodies, chunked) => {
    const above = await peakOf(measured, bodies(), chunked)
    console.log(`${name}: ${megabytes(above)} above ${megabytes(measured.idle)}`)
    expect(above).toBeLessThanOrEqual(MOST_ABOVE_IDLE)
  })

  it('does not grow over bodies one after another', async () => {
    const peaks: number[] = []
    for (let count = 0; count < 10; count++) {
      peaks.push(await peakOf(measured, large(count % 2 === 0 ? '' : STREAM), count % 3 === 0))
      if (count % 3 === 0) peaks.push(await peakOf(measured, ten(), count % 2 === 0))
    }
    console.log(`one after another: ${peaks.map(megabytes).join(', ')}`)
    expect(Math.max(...peaks)).toBeLessThanOrEqual(MOST_ABOVE_IDLE)
  })
})

describe.skipIf(!TELLS_MEMORY).each([
  ['many or deep values', MANY_VALUES],
  ['long or many texts and names', TEXTS_AND_NAMES],
  ['many names', DISTINCT_NAMES],
])('bodies of %s', (_, bodies) => {
  let measured: MeasuredGateway
  let plain = 0
  beforeAll(async () => {
    measured = await startMeasured()
    const rounds = 3
    for (let round = 0; round < rounds; round++) {
      plain += (await cpuOf(() => post(measured, chatOf(LARGEST_BODY_BYTES, marker())))).cpu / rounds
    }
    console.log(`one text: ${Math.round(plain)} ms of CPU`)
  })
  afterAll(() => measured?.gateway.stop())

  /** CPU time of workerd in milliseconds: time on the wall says how busy the machine is. */
  async function cpuOf<Result>(work: () => Promise<Result>): Promise<{ cpu: number; result: Result }> {
    const before = cpuMicroseconds(measured.gateway.pids.workerd)
    const result = await work()
    return { cpu: (cpuMicroseconds(measured.gateway.pids.workerd) - before) / 1_000, result }
  }

  it.each(bodies)('$name', async ({ name, body, status }) => {
    const bytes = body()
    expect(bytes.length).toBeGreaterThan(LARGEST_BODY_BYTES - 2_000)
    expect(bytes.length).toBeLessThanOrEqual(LARGEST_BODY_BYTES)
    const { peak, result } = await measured.memory.peakOf(() =>
      cpuOf(() => Promise.all([post(measured, bytes), post(measured, chatOf(1_000, marker()))])),
    )
    const [answer, small] = result.result
    const above = peak - measured.idle
    console.log(
      `${name}: ${answer.status}, ${Math.round(result.cpu)} ms of CPU, ` +
        `${(result.cpu / plain).toFixed(1)} times one text, ${megabytes(above)} above idle`,
    )
    expect(answer.status, answer.text.slice(0, 300)).toBe(status)
    expect(small.status).toBe(200)
    expect((await post(measured, chatOf(1_000, marker()))).status).toBe(200)
    expect(result.cpu).toBeLessThanOrEqual(plain * MOST_TIMES_PLAIN)
    expect(above).toBeLessThanOrEqual(MOST_ABOVE_IDLE)
  })
})
