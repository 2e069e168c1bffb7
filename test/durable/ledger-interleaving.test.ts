import { abortAllDurableObjects } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it, vi } from 'vitest'
import { NO_USAGE } from '../../src/calls/usage.ts'
import type { RecordBody } from '../../src/ledger/records/record-body.ts'
import { SeededRandom } from '../unit/lib/seeded-random.ts'
import { useDatabaseGate } from './database-gate.ts'
import {
  creditSum,
  expectIntactChain,
  LEASE_MS,
  newOrganization,
  type Organization,
  outcome,
  tableRows,
} from './ledger-harness.ts'

const STEPS = 120
const gate = useDatabaseGate()

/** What the callers were told, which has to be what Postgres says in the end. */
class Expectations {
  /** Micro-credits held for the calls that may be open. */
  readonly held = new Map<string, number>()
  /** Calls whose record must be there, with their cost where the caller was told that they are settled. */
  readonly recorded = new Map<string, number | null>()
  readonly refused = new Set<string>()
  readonly granted = new Map<string, number>()
  /** Calls with a closing that was not answered. */
  readonly unanswered = new Set<string>()
  /** Calls of which nobody was told anything. */
  readonly unknown = new Set<string>()
}

type Act = (organization: Organization, random: SeededRandom, expected: Expectations) => Promise<unknown>

const anyOf = <Item>(items: Iterable<Item>, random: SeededRandom): Item | undefined => {
  const list = [...items]
  return list[random.below(list.length || 1)]
}

/** Calls a method up to three times, sometimes although it was answered: callers and networks repeat. */
async function repeatedly<Result>(
  random: SeededRandom,
  use: () => Promise<Result>,
): Promise<Result | undefined> {
  let answer: Result | undefined
  for (let tries = 1 + random.below(3); tries > 0; tries -= 1) {
    const result = await use().catch(() => undefined)
    answer ??= result
    if (answer !== undefined && random.below(3) > 0) break
  }
  return answer
}

const open: Act = async (organization, random, expected) => {
  const call = organization.opening()
  const reserve = random.below(4) === 0 ? 0 : 1 + random.below(60)
  const result = await repeatedly(random, () => organization.open(reserve, call))
  if (result === undefined) expected.unknown.add(call.callId)
  else if (result.kind !== 'admitted') expected.refused.add(call.callId)
  else {
    expected.held.set(call.callId, reserve)
    expected.recorded.set(call.callId, null)
  }
}

const close: Act = async (organization, random, expected) => {
  const callId = anyOf(expected.held.keys(), random)
  if (callId === undefined) return
  const cost = random.below((expected.held.get(callId) ?? 0) + 1)
  const closed = () => organization.ledger.close(callId, outcome({ cost })).then(() => ({ stored: true }))
  const held = expected.held.get(callId) ?? 0
  expected.held.delete(callId)
  const result = await repeatedly(random, closed)
  // Of several closings the first counts: where one was not answered, its cost may be the one that was taken.
  const isCertain = !expected.unanswered.has(callId)
  if (result) expected.recorded.set(callId, isCertain ? cost : null)
  else {
    expected.unanswered.add(callId)
    expected.held.set(callId, held)
  }
}

const extend: Act = async (organization, random, expected) => {
  const callId = anyOf(expected.held.keys(), random)
  if (callId === undefined) return
  const cost = random.below((expected.held.get(callId) ?? 0) + 1)
  const progress = random.below(2) === 0 ? null : { provider: 'p', usage: { ...NO_USAGE, output: 1 }, cost }
  await repeatedly(random, () => organization.ledger.extend(callId, LEASE_MS, progress))
}

const refuse: Act = async (organization, random, expected) => {
  const call = organization.opening()
  // A reason of its own, because refusals for one reason are gathered in one record.
  const refusal = outcome({ status: 403, errorCode: `refused_${call.callId}`, usage: null, provenance: null })
  const done = await repeatedly(random, () =>
    organization.ledger.record(call, refusal).then(() => ({ recorded: true })),
  )
  if (done) expected.recorded.set(call.callId, 0)
  else expected.unknown.add(call.callId)
}

const grant: Act = async (organization, random, expected) => {
  const credit = organization.grant(random.below(200))
  const result = await repeatedly(random, () => organization.ledger.grantCredits(credit))
  if (result) expected.granted.set(credit.id, credit.amount)
}

const flush: Act = (organization) => organization.ledger.flush().catch(() => undefined)
const wake: Act = (organization) => organization.runAlarm().catch(() => undefined)
const crash: Act = () => abortAllDurableObjects()
/** After a day, rows of the log are overwritten. Every lease has run out then. */
const passTime: Act = async (_, random) =>
  vi.setSystemTime(Date.now() + (random.below(6) === 0 ? 86_400_000 : random.below(LEASE_MS)))
const evict: Act = (organization) => organization.evict().catch(() => undefined)

const turnGate: Act = async (_, random) => {
  gate.mode = (['open', 'open', 'away', 'answer_lost'] as const)[random.below(4)] ?? 'open'
}

/** Everything that Postgres has not got goes with the storage: calls that are open leave no trace. */
const loseStorage: Act = async (organization, _, expected) => {
  gate.mode = 'open'
  await organization.ledger.flush()
  await organization.loseStorage()
  for (const callId of expected.held.keys()) {
    expected.recorded.delete(callId)
    expected.unknown.add(callId)
  }
  expected.held.clear()
}

const TOGETHER = [open, open, open, close, close, close, extend, refuse, grant, flush, wake]
const BETWEEN = [turnGate, passTime, evict, crash]

async function runSteps(organization: Organization, random: SeededRandom, expected: Expectations) {
  for (let step = 0; step < STEPS; step += 1) {
    const acts = Array.from({ length: 1 + random.below(5) }, () => anyOf(TOGETHER, random) ?? open)
    if (random.below(12) === 0) acts.splice(random.below(acts.length), 0, crash)
    await Promise.all(acts.map((act) => act(organization, random, expected)))
    if (random.below(3) === 0) await anyOf(BETWEEN, random)?.(organization, random, expected)
    if (random.below(60) === 0) await loseStorage(organization, random, expected)
    const balance = await organization.ledger.balance().catch(() => null)
    expect(balance?.available ?? 0).toBeGreaterThanOrEqual(0)
  }
}

async function settleEverything(organization: Organization) {
  gate.mode = 'open'
  vi.setSystemTime(Date.now() + 2 * LEASE_MS)
  // Makes sure there is an account and an alarm, whatever the last steps were.
  await organization.ledger.recordChange(organization.change('test.ended'))
  await organization.runAlarm()
  expect(await organization.ledger.flush()).toEqual({ pending: 0 })
}

describe('any interleaving of calls, faults and time', () => {
  const seeds = Array.from({ length: Number(env.LEDGER_SEEDS) }, (_, index) => index + 1)

  it.each(seeds)(
    'leaves one record of each call and the same balance on both sides (seed %i)',
    async (seed) => {
      const organization = newOrganization()
      const expected = new Expectations()
      const random = new SeededRandom(seed)
      await organization.ledger.grantCredits(organization.grant(300))
      await runSteps(organization, random, expected)
      await settleEverything(organization)

      const { balance, reserved } = await organization.ledger.balance()
      expect(reserved).toBe(0)
      expect(await creditSum(organization.organizationId)).toBe(balance)

      const rows = await expectIntactChain(organization)
      expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
      const settled = new Map(rows.map(({ id, body }) => [id, JSON.parse(body) as RecordBody]))
      for (const [callId, cost] of expected.recorded) {
        const record = settled.get(callId)
        expect(record, `record of ${callId}`).toBeDefined()
        // Of a closing and a lease that ran out, the first counts.
        const wasClosed = record?.kind === 'call' && !record.flags.includes('settled_by_alarm')
        if (cost !== null && wasClosed) expect(record).toMatchObject({ cost })
      }
      for (const callId of expected.refused) expect(settled.has(callId)).toBe(false)

      const entries = await tableRows('credit_entries', organization.organizationId)
      for (const [id, amount] of expected.granted) {
        expect(entries).toContainEqual(expect.objectContaining({ id, kind: 'grant', amount: String(amount) }))
      }
      const costs = rows.reduce((sum, { creditsSettled }) => sum + creditsSettled, 0)
      const settlements = entries.filter(({ kind }) => kind === 'settlement')
      expect(settlements.reduce((sum, { amount }) => sum - Number(amount), 0)).toBe(costs)
    },
  )
})
