import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { query } from '../harness/gateway.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import type { CallResult } from '../harness/model-calls.ts'
import { type FaultyGateway, PATIENT_TIMES, startFaultyGateway } from './support/faulty-gateway.ts'
import { Random } from './support/random.ts'
import {
  askJson,
  expectSeenIn,
  expectWholeStream,
  read,
  replay,
  responseIdIn,
  type ToldResponse,
} from './support/response-readers.ts'
import {
  endedRows,
  inParallel,
  RESPONSE_SEEDS,
  RUNS,
  type Scripted,
  someAnswer,
} from './support/response-trials.ts'

const AT_ONCE = 10
const LONGEST_MS = 600
/** Time-out of a response; the upstream's is longer. */
const TIME_LIMIT_MS = 3_000

let faulty: FaultyGateway
beforeAll(async () => {
  faulty = await startFaultyGateway({
    ...PATIENT_TIMES,
    RESPONSE_TIME_LIMIT_MS: TIME_LIMIT_MS,
    LEDGER_LEASE_MS: 10_000,
    DEGRADED_RATE_LIMIT: 1_000_000,
  })
})
afterAll(() => faulty?.stop())

/** Some that would never end by themselves. */
function someScript(random: Random): Scripted {
  const answer = someAnswer(random, LONGEST_MS)
  if (random.chance(0.6)) return answer
  return {
    ...answer,
    input: `script:${random.pick(['stall', 'silent-stream', 'slow-headers'])} signal=never`,
  }
}

interface Trial {
  results: CallResult[]
  id: string
  removed: boolean
  /** The final response; null if it was deleted. */
  last: ToldResponse | null
}

/** A response that is cancelled, deleted, both at once, or left to its time limit, at a random moment. */
async function trial(key: string, random: Random): Promise<Trial> {
  const { gateway } = faulty
  const { model, input } = someScript(random)
  const acts = random.pick([
    ['cancel'],
    ['cancel'],
    ['delete'],
    ['cancel', 'delete'],
    ['delete', 'delete'],
    [],
  ])
  const background = random.chance(0.3)
  const body = { model, input, stream: !background, background }
  const reading = read(gateway, { key, method: 'POST', path: '/v1/responses', body })
  await reading.answered
  const pause = random.chance(0.3) ? 0 : random.integer(0, LONGEST_MS)
  await new Promise((resolve) => setTimeout(resolve, pause))
  const id = background
    ? (JSON.parse((await reading.result).text) as ToldResponse).id
    : await firstId(() => reading.bytes())
  const path = `/v1/responses/${id}`
  const acted = await Promise.all(
    acts.map((act) =>
      act === 'cancel'
        ? read(gateway, { key, method: 'POST', path: `${path}/cancel`, body: {} }).result
        : read(gateway, { key, method: 'DELETE', path }).result,
    ),
  )
  const removed = acts.includes('delete')
  for (const [index, result] of acted.entries()) {
    if (removed && result.status === 404) continue
    expect({ act: acts[index], status: result.status, text: result.text }).toMatchObject({ status: 200 })
  }
  const result = await reading.result
  const results = [result, ...acted]
  if (removed) {
    const { status, text } = await read(gateway, { key, path }).result
    expect({ status, text }).toMatchObject({ status: 404 })
    return { results, id, removed, last: null }
  }
  const whole = await replay(gateway, key, id)
  if (!background) expectSeenIn(whole, reading.bytes())
  const last = expectWholeStream(whole)
  expect(await askJson(gateway, { key, path })).toEqual(last)
  if (acts.includes('cancel')) expect(['incomplete', 'completed']).toContain(last.status)
  if (last.status === 'incomplete') {
    const reason = acts.includes('cancel') ? 'cancelled' : 'max_time'
    expect(last.incomplete_details).toEqual({ reason })
  }
  return { results, id, removed, last }
}

async function firstId(bytes: () => string): Promise<string> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    const id = responseIdIn(bytes())
    if (id !== null) return id
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`no response in ${bytes().slice(0, 200)}`)
}

describe('responses that are ended by their owners or by time', () => {
  it.each(RESPONSE_SEEDS)('end once, or are gone (seed %i)', async (seed) => {
    const random = new Random(seed)
    const tenant = await createBusyTenant(faulty.gateway, 10_000_000_000)
    const trials = await inParallel(RUNS, AT_ONCE, () => trial(tenant.key, random))
    const rows = await endedRows(faulty.gateway, tenant)
    const kept = trials.flatMap(({ id, last }) => (last ? [[id, last.status] as const] : []))
    expect(new Map(rows.map(({ id, status }) => [id, status]))).toEqual(new Map(kept))
    const items = await query(
      faulty.gateway,
      'select id from response_items where organization_id = $1 and not (response_id = any($2))',
      [tenant.organizationId, kept.map(([id]) => id)],
    )
    expect(items).toEqual([])
    for (const status of ['completed', 'incomplete']) {
      expect(kept.filter(([, found]) => found === status).length).toBeGreaterThan(RUNS / 20)
    }
    const { calls } = await expectWholeLedger(
      faulty.gateway,
      tenant,
      trials.flatMap(({ results }) => results),
    )
    expect(calls).toHaveLength(trials.length)
    expect(calls.filter(({ flags }) => flags.includes('settled_by_alarm'))).toEqual([])
  })

  it('goes on while Redis is away', async () => {
    const { gateway, redis } = faulty
    const { key } = await createBusyTenant(gateway, 1_000_000_000)
    const body = { model: 'scripted-chat', input: 'script:long-stream tokens=60 delay=20', stream: true }
    const reading = read(gateway, { key, method: 'POST', path: '/v1/responses', body })
    await reading.answered
    await redis.become('refuse')
    try {
      expect((await reading.result).end).toBe('complete')
      const last = expectWholeStream(reading.bytes())
      expect(last).toMatchObject({ status: 'completed', output_text: ' word'.repeat(60) })
      const { status, text } = await read(gateway, { key, path: `/v1/responses/${last.id}` }).result
      expect({ status, id: (JSON.parse(text) as ToldResponse).id }).toEqual({ status: 200, id: last.id })
    } finally {
      await redis.become('pass')
    }
  })
})
