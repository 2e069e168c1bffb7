import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { query } from '../harness/gateway.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import type { CallResult } from '../harness/model-calls.ts'
import type { Tenant } from '../harness/tenant.ts'
import type { FaultMode } from './support/fault-proxy.ts'
import { type FaultyGateway, PATIENT_TIMES, startFaultyGateway } from './support/faulty-gateway.ts'
import { Random } from './support/random.ts'
import {
  askJson,
  expectWholeStream,
  type Reading,
  read,
  replay,
  type ToldResponse,
  wholeEvents,
} from './support/response-readers.ts'
import {
  endedRows,
  inParallel,
  RESPONSE_SEEDS,
  RUNS,
  type Scripted,
  someAnswer,
} from './support/response-trials.ts'

const TOGETHER = 20
const AT_ONCE = 10
const LONGEST_MS = 2_000
/** Time for which a caller is known without Postgres. */
const KNOWN_MS = 25_000
const MODES: FaultMode[] = ['refuse', 'hang', 'error', 'lose_answers', { delayMilliseconds: 300 }]
/** The gateway waits two seconds for Postgres; the rest is for a machine that is busy. */
const END_BOUND_MS = 4_500
/** Shorter than some of the outages: no window may close on what Postgres has not got. */
const WINDOW_MS = 1_000

let faulty: FaultyGateway
beforeAll(async () => {
  faulty = await startFaultyGateway({
    ...PATIENT_TIMES,
    RESPONSE_WINDOW_MS: WINDOW_MS,
    LEDGER_LEASE_MS: 5_000,
  })
})
afterAll(() => faulty?.stop())
afterEach(() => faulty.postgres.become('pass'))

interface Flight {
  answer: Scripted
  reading: Reading
}

/** How long the last event took after everything else had been told, in milliseconds. */
function waitForEnd({ reading }: Flight): number {
  const text = reading.bytes()
  const end = text.search(/event: response\.(completed|failed)\n/)
  const at = (bytes: number) => reading.arrivals.find(([total]) => total >= bytes)?.[1] ?? Number.NaN
  return at(text.length) - at(end)
}

const post = (key: string, answer: Scripted, more: object) => ({
  key,
  method: 'POST' as const,
  path: '/v1/responses',
  body: { model: answer.model, input: answer.input, ...more },
})

/** Responses of which Postgres goes away at a random moment around their end, and comes back at another. */
async function outage(
  tenant: Tenant,
  random: Random,
): Promise<{ results: CallResult[]; ended: ToldResponse[] }> {
  const { gateway, postgres } = faulty
  const { key } = tenant
  const since = Date.now()
  const flights = Array.from({ length: TOGETHER }, (): Flight => {
    const answer = someAnswer(random, LONGEST_MS)
    return { answer, reading: read(gateway, post(key, answer, { stream: true })) }
  })
  if (random.chance(0.8)) await Promise.all(flights.map(({ reading }) => reading.answered))
  await new Promise((resolve) => setTimeout(resolve, random.integer(50, 1_000)))
  await postgres.become(random.pick(MODES))
  const results = await Promise.all(flights.map(({ reading }) => reading.result))
  const begun = flights.filter((_, index) => results[index]?.status === 200)
  // Requests that arrived at that moment are refused as an internal error, or admitted.
  for (const { status } of results) expect([200, 500]).toContain(status)
  const ended = begun.map(expectEnded)
  if (random.chance(0.5))
    await new Promise((resolve) => setTimeout(resolve, random.integer(0, 2 * WINDOW_MS)))
  if (Date.now() - since < KNOWN_MS) await Promise.all(ended.map((one) => expectTold(key, one)))
  await postgres.become('pass')
  const next = await inParallel(ended.length, AT_ONCE, (index) =>
    goOn(key, ended[index] as ToldResponse, random),
  )
  return {
    results: [...results, ...next.map(({ result }) => result)],
    ended: [...ended, ...next.map(({ last }) => last)],
  }
}

/** The response ends in time, complete, with the upstream's text. */
function expectEnded(flight: Flight): ToldResponse {
  const last = expectWholeStream(flight.reading.bytes())
  expect(last).toMatchObject({ status: 'completed', output_text: flight.answer.text })
  expect(waitForEnd(flight)).toBeLessThan(END_BOUND_MS)
  return last
}

/** The object answers while Postgres does not, also when its window is over. */
async function expectTold(key: string, response: ToldResponse): Promise<void> {
  const path = `/v1/responses/${response.id}`
  const { status, text } = await read(faulty.gateway, { key, path }).result
  if (status === 500) {
    // After the window only Postgres has the response.
    const rows = await query(faulty.gateway, 'select status from responses where id = $1', [response.id])
    const stranger = await read(faulty.gateway, { key, path: '/v1/responses/resp_unknown' }).result
    // Callers are looked up from time to time; when that fails, no call is admitted.
    if (stranger.status === 500) return
    expect({ id: response.id, mode: faulty.postgres.mode, rows }).toMatchObject({
      rows: [{ status: response.status }],
    })
    return
  }
  expect({ status, response: JSON.parse(text) }).toEqual({ status: 200, response })
}

/** The conversation continues as soon as Postgres is back, with all its items. */
async function goOn(key: string, before: ToldResponse, random: Random) {
  const { gateway } = faulty
  const place = random.chance(0.5)
    ? { conversation: before.conversation?.id }
    : { previous_response_id: before.id }
  const answer = someAnswer(random, 0)
  const reading = read(gateway, post(key, answer, { stream: true, ...place }))
  const result = await reading.result
  expect({ status: result.status, text: result.status === 200 ? '' : result.text }).toEqual({
    status: 200,
    text: '',
  })
  const last = expectWholeStream(reading.bytes())
  expect(last.conversation).toEqual(before.conversation)
  const path = `/v1/conversations/${before.conversation?.id}/items?order=asc`
  const { data } = await askJson<{ data: Array<{ content: Array<{ text: string }> }> }>(gateway, {
    key,
    path,
  })
  expect(data.map(({ content }) => content[0]?.text).filter((_, index) => index % 2 === 1)).toEqual([
    before.output_text,
    last.output_text,
  ])
  return { result, last }
}

/** Each response exists once, with its items once, and is read the same after its window. */
async function expectStored(tenant: Tenant, ended: readonly ToldResponse[]): Promise<void> {
  const { gateway } = faulty
  const rows = await endedRows(gateway, tenant)
  expect(new Map(rows.map(({ id, status }) => [id, status]))).toEqual(
    new Map(ended.map(({ id, status }) => [id, status])),
  )
  const uses = await query(
    gateway,
    `select response_id, direction, count(*)::int as n from response_item_uses
      where response_id in (select id from responses where organization_id = $1) group by 1, 2`,
    [tenant.organizationId],
  )
  expect(uses).toHaveLength(2 * ended.length)
  expect(uses.filter(({ n }) => n !== 1)).toEqual([])
  await new Promise((resolve) => setTimeout(resolve, WINDOW_MS))
  await inParallel(Math.min(20, ended.length), AT_ONCE, async (index) => {
    const response = ended[index] as ToldResponse
    const path = `/v1/responses/${response.id}`
    expect(await askJson(gateway, { key: tenant.key, path })).toEqual(response)
    const events = wholeEvents(await replay(gateway, tenant.key, response.id))
    expect(events.at(-1)?.data.response).toEqual(response)
  })
}

describe('Postgres away when responses end', () => {
  it.each(RESPONSE_SEEDS)('they end in time, and are written once (seed %i)', async (seed) => {
    const random = new Random(seed)
    for (let trials = 0; trials < RUNS; ) {
      // A tenant of its own: a caller known for longer would be looked up again, which another test covers.
      const tenant = await createBusyTenant(faulty.gateway, 10_000_000_000)
      const { results, ended } = await outage(tenant, random)
      trials += ended.length / 2
      await expectStored(tenant, ended)
      const { calls } = await expectWholeLedger(faulty.gateway, tenant, results)
      expect(calls.filter(({ status }) => status === 200)).toHaveLength(ended.length)
    }
  })
})
