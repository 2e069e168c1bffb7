import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { query, upstreamControl } from '../harness/gateway.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import type { CallResult } from '../harness/model-calls.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { type Tenant, uniqueName } from '../harness/tenant.ts'
import { Random } from './support/random.ts'
import {
  askJson,
  expectSeenIn,
  expectWholeStream,
  type Reading,
  read,
  replay,
  responseIdIn,
  type ToldResponse,
} from './support/response-readers.ts'
import {
  endedRows,
  heldAnswer,
  inParallel,
  RESPONSE_SEEDS,
  RUNS,
  type Scripted,
  someAnswer,
} from './support/response-trials.ts'

const PER_KILL = 25
const AT_ONCE = 8
/** Time-out for work during the kill. */
const LONGEST_MS = 1_500

let gateway: StartedGateway
beforeAll(async () => {
  gateway = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    variables: {
      LEDGER_FLUSH_MS: '100',
      LEDGER_LEASE_MS: '2000',
      UPSTREAM_HEADERS_TIMEOUT_MS: '4000',
      UPSTREAM_FIRST_EVENT_TIMEOUT_MS: '4000',
      LIMITS_TIMEOUT_MS: '20000',
    },
  })
})
afterAll(() => gateway?.stop())

interface Flight {
  answer: Scripted
  reading: Reading
}

interface Fallen {
  id: string
  answer: Scripted | null
  seen: string
  /** The whole stream, as it was told after the crash. */
  whole: string
  last: ToldResponse
}

/** A client begins a response after a random while, so that a kill finds it anywhere. */
async function begin(key: string, random: Random, signal: string): Promise<Flight> {
  const answer = random.chance(0.3)
    ? heldAnswer(random, signal)
    : someAnswer(random, random.pick([100, LONGEST_MS]))
  await new Promise((resolve) => setTimeout(resolve, random.integer(0, 700)))
  const { model, input } = answer
  const body = { model, input, stream: true }
  return { answer, reading: read(gateway, { key, method: 'POST', path: '/v1/responses', body }) }
}

/** Kills the gateway in the middle of many responses. @returns what clients saw, and what it says of each afterwards */
async function killOnce(tenant: Tenant, random: Random, known: ReadonlySet<string>) {
  const signal = uniqueName('crash')
  let ended = 0
  const beginning = inParallel(PER_KILL, PER_KILL, async () => {
    const flight = await begin(tenant.key, random, signal)
    flight.reading.result.then(() => {
      ended += 1
    })
    return flight
  })
  // On a busy machine nothing would have ended after a fixed time, on a fast one everything.
  const wanted = random.integer(0, Math.floor(PER_KILL / 2))
  await vi.waitFor(() => expect(ended).toBeGreaterThanOrEqual(wanted), { timeout: 10_000, interval: 5 })
  await new Promise((resolve) => setTimeout(resolve, random.integer(0, 500)))
  await gateway.workerd.kill('SIGKILL')
  const flights = await beginning
  const results = await Promise.all(flights.map(({ reading }) => reading.result))
  await gateway.workerd.restart()
  await upstreamControl(gateway).release(signal)
  const told = flights.map((flight) => ({ ...flight, id: responseIdIn(flight.reading.bytes()) }))
  const begun = (await responseIds(tenant)).filter((id) => !known.has(id))
  // Rows without an answer to a client: of the kill itself, or of an answer that was lost.
  const ids = new Set([...begun, ...told.flatMap(({ id }) => (id === null ? [] : [id]))])
  const fallen = await inParallel(ids.size, AT_ONCE, async (index): Promise<Fallen | null> => {
    const id = [...ids][index] ?? ''
    const flight = told.find((one) => one.id === id)
    return expectEnded(tenant.key, id, flight?.answer ?? null, flight?.reading.bytes() ?? '')
  })
  return { results, fallen: fallen.filter((one) => one !== null) }
}

const responseIds = async ({ organizationId }: Tenant): Promise<string[]> =>
  (await query(gateway, 'select id from responses where organization_id = $1', [organizationId])).map(
    ({ id }) => String(id),
  )

/** Two concurrent readers get the same events, which agree with those read before the kill and with the snapshot. */
async function expectEnded(
  key: string,
  id: string,
  answer: Scripted | null,
  seen: string,
): Promise<Fallen | null> {
  const path = `/v1/responses/${id}`
  const { status } = await read(gateway, { key, path }).result
  // It was rolled back: the kill came before any client had its id.
  if (status === 404 && seen === '') return null
  const [whole, again] = await Promise.all([replay(gateway, key, id), replay(gateway, key, id)])
  expect(again).toBe(whole)
  expectSeenIn(whole, seen)
  const last = expectWholeStream(whole)
  expect(await askJson(gateway, { key, path })).toEqual(last)
  if (answer !== null) {
    if (last.status === 'completed') expect(last.output_text).toBe(answer.text)
    else expect(answer.text.startsWith(last.output_text)).toBe(true)
  }
  expect(['completed', 'failed']).toContain(last.status)
  return { id, answer, seen, whole, last }
}

describe('workerd killed in the middle of responses', () => {
  it.each(RESPONSE_SEEDS)(
    'each ends once, and nothing that was told is taken back (seed %i)',
    async (seed) => {
      const random = new Random(seed)
      const tenant = await createBusyTenant(gateway, 10_000_000_000)
      const results: CallResult[] = []
      const fallen: Fallen[] = []
      while (fallen.length < RUNS) {
        const killed = await killOnce(tenant, random, new Set(fallen.map(({ id }) => id)))
        results.push(...killed.results)
        // Answers after the previous kill are the same after this one.
        const before = fallen.slice(-5)
        await Promise.all(
          before.map(async ({ id, whole }) => expect(await replay(gateway, tenant.key, id)).toBe(whole)),
        )
        fallen.push(...killed.fallen)
      }
      const rows = await endedRows(gateway, tenant)
      expect(new Map(rows.map(({ id, status }) => [id, status]))).toEqual(
        new Map(fallen.map(({ id, last }) => [id, last.status])),
      )
      const failed = fallen.filter(({ last }) => last.status === 'failed')
      // Both occurred: responses that had ended, and responses that had not.
      expect(failed.length).toBeGreaterThan(RUNS / 10)
      expect(fallen.length - failed.length).toBeGreaterThan(RUNS / 20)
      await expectContinues(tenant, random, fallen)
      const { calls } = await expectWholeLedger(gateway, tenant, results)
      expect(calls.length).toBeGreaterThanOrEqual(fallen.length)
    },
  )

  it('ends responses by itself that no client reads', async () => {
    const tenant = await createBusyTenant(gateway, 1_000_000_000)
    const signal = uniqueName('unwatched')
    const body = { model: 'scripted-chat', input: `script:stall signal=${signal}`, background: true }
    const asking = { key: tenant.key, method: 'POST', path: '/v1/responses', body } as const
    const { id } = await askJson<ToldResponse>(gateway, asking)
    await gateway.workerd.restart()
    await upstreamControl(gateway).release(signal)
    expect(await endedRows(gateway, tenant)).toMatchObject([{ id, status: 'failed' }])
  })
})

/** Every conversation continues: with completed responses, and without failed ones. */
async function expectContinues(tenant: Tenant, random: Random, fallen: readonly Fallen[]): Promise<void> {
  const { key } = tenant
  await inParallel(Math.min(30, fallen.length), AT_ONCE, async () => {
    const { last } = random.pick(fallen)
    const conversation = last.conversation?.id ?? ''
    const before = await items(key, conversation)
    expect(before).toHaveLength(last.status === 'failed' ? 0 : 2)
    const body = { model: 'scripted-chat', input: 'script:canned', conversation, store: false }
    const next = await askJson<ToldResponse>(gateway, { key, method: 'POST', path: '/v1/responses', body })
    expect(next.status).toBe('completed')
  })
}

const items = async (key: string, conversation: string): Promise<unknown[]> =>
  (
    await askJson<{ data: unknown[] }>(gateway, {
      key,
      path: `/v1/conversations/${conversation}/items?order=asc`,
    })
  ).data
