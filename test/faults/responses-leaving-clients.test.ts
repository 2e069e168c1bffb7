import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import type { CallResult } from '../harness/model-calls.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { Random } from './support/random.ts'
import {
  askJson,
  expectSeenIn,
  expectWholeStream,
  lastSequence,
  read,
  replay,
  responseIdIn,
  type ToldResponse,
  withoutComments,
} from './support/response-readers.ts'
import {
  endedRows,
  inParallel,
  RESPONSE_SEEDS,
  RUNS,
  type Scripted,
  someAnswer,
} from './support/response-trials.ts'

const AT_ONCE = 12
const LONGEST_MS = 400

let gateway: StartedGateway
beforeAll(async () => {
  gateway = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    variables: { LEDGER_FLUSH_MS: '100', STREAM_HEARTBEAT_MS: '50', LIMITS_TIMEOUT_MS: '20000' },
  })
})
afterAll(() => gateway?.stop())

/** How a client leaves: before it hears anything, with the head of the answer, or in the middle of the events. */
function someLeaving(random: Random) {
  if (random.chance(0.15)) return { leaveAfterMilliseconds: random.integer(0, 60) }
  return { leaveAfterBytes: random.chance(0.15) ? 0 : random.integer(1, 12_000) }
}

interface Trial {
  answer: Scripted
  result: CallResult
  id: string | null
}

/** One client that begins a response and leaves; others, and itself, read on while it runs and afterwards. */
async function trial(key: string, random: Random): Promise<Trial> {
  const answer = someAnswer(random, LONGEST_MS)
  const { model, input } = answer
  const reading = read(gateway, {
    key,
    method: 'POST',
    path: '/v1/responses',
    body: { model, input, stream: true },
    ...someLeaving(random),
  })
  const result = await reading.result
  const seen = reading.bytes()
  const id = responseIdIn(seen)
  if (id === null) return { answer, result, id }
  if (random.chance(0.5)) await new Promise((resolve) => setTimeout(resolve, random.integer(0, LONGEST_MS)))
  const known = lastSequence(seen)
  const readers = Array.from({ length: random.integer(1, 3) }, () => follow(key, id, known, random))
  const [own, ...others] = await Promise.all([readOn(key, id, seen, random), ...readers])
  const whole = await replay(gateway, key, id)
  expect(expectWholeStream(whole).output_text).toBe(answer.text)
  expect(own).toBe(whole)
  expectSeenIn(whole, seen)
  for (const { after, bytes } of others) expectSeenIn(whole, bytes, after)
  return { answer, result, id }
}

/** Another reader, from anywhere; it may leave again. */
async function follow(key: string, id: string, known: number, random: Random) {
  const after = random.integer(0, known)
  const path = `/v1/responses/${id}?stream=true&starting_after=${after}`
  const reading = read(gateway, { key, path, ...(random.chance(0.3) && someLeaving(random)) })
  const { status } = await reading.result
  if (status !== null) expect(status).toBe(200)
  return { after, bytes: reading.bytes() }
}

/** Resumes after the last event that arrived whole, again and again, until the end. @returns all frames in order. */
async function readOn(key: string, id: string, seen: string, random: Random): Promise<string> {
  let frames = wholeFrames(seen)
  for (;;) {
    if (isEnded(frames)) return frames
    const path = `/v1/responses/${id}?stream=true&starting_after=${lastSequence(frames)}`
    const leaving = random.chance(0.4) ? someLeaving(random) : {}
    const reading = read(gateway, { key, path, ...leaving })
    const { end } = await reading.result
    frames += wholeFrames(reading.bytes())
    if (end === 'complete') return frames
  }
}

const isEnded = (frames: string) => /\nevent: response\.(completed|failed)\n.*$/s.test(`\n${frames}`)

function wholeFrames(bytes: string): string {
  const known = withoutComments(bytes)
  const end = known.lastIndexOf('\n\n')
  return end < 0 ? '' : known.slice(0, end + 2)
}

describe('clients of responses that leave at any moment', () => {
  it.each(RESPONSE_SEEDS)('stop nothing, and read on where they were (seed %i)', async (seed) => {
    const random = new Random(seed)
    const tenant = await createBusyTenant(gateway, 10_000_000_000)
    const trials = await inParallel(RUNS, AT_ONCE, () => trial(tenant.key, random))
    const rows = await endedRows(gateway, tenant)
    expect(rows.every(({ status }) => status === 'completed')).toBe(true)
    // A client that left before any answer has nevertheless started a response, if the request arrived.
    const told = new Set(trials.flatMap(({ id }) => (id === null ? [] : [id])))
    expect(told.size).toBeGreaterThan(RUNS / 3)
    expect(rows.length).toBeGreaterThanOrEqual(told.size)
    expect(rows.length).toBeLessThanOrEqual(trials.length)
    const untold = rows.filter(({ id }) => !told.has(id))
    await inParallel(untold.length, AT_ONCE, async (index) => {
      const id = untold[index]?.id ?? ''
      const last = expectWholeStream(await replay(gateway, tenant.key, id))
      expect(await askJson<ToldResponse>(gateway, { key: tenant.key, path: `/v1/responses/${id}` })).toEqual(
        last,
      )
      expect(trials.map(({ answer }) => answer.text)).toContain(last.output_text)
    })
    const { calls } = await expectWholeLedger(
      gateway,
      tenant,
      trials.map(({ result }) => result),
    )
    expect(calls).toHaveLength(rows.length)
    expect(calls.filter(({ status, flags }) => status !== 200 || flags.length > 0)).toEqual([])
  })
})
