import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { outcomeOf } from '../../../../src/governance/audit-record.ts'
import { ledgerClient } from '../../../../src/governance/ledger/client.ts'
import type { CommitBatch } from '../../../../src/governance/ledger/commits/commit.ts'
import { someOpening } from '../memory-ledger.ts'

const MINUTE_MS = 60_000
const { organizationId } = someOpening()

interface Recorded {
  id: string
  count?: number
  status: number
}

let recorded: Recorded[]
let waiting: Array<Promise<unknown>>
let calls: number
let namespace: DurableObjectNamespace

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000 * MINUTE_MS })
  recorded = []
  waiting = []
  calls = 0
  namespace = {
    getByName: () => ({
      async commit({ calls: { ids, outcomes } }: CommitBatch) {
        for (const [index, id] of ids.entries()) recorded.push({ id, ...JSON.parse(`{${outcomes[index]}}`) })
        return { refused: [], unsettled: [] }
      },
    }),
  } as unknown as DurableObjectNamespace
})
afterEach(() => void vi.useRealTimers())

async function refuse(keyId: string, status = 401, errorCode = 'unauthorized'): Promise<void> {
  calls += 1
  const actor = { userId: 'user', keyId, administrator: null, ip: null }
  const opening = someOpening({ callId: `call_${calls}`, organizationId, at: Date.now(), actor })
  const outcome = outcomeOf(opening, Date.now(), { status, errorCode })
  const recording = ledgerClient(namespace, organizationId, (work) => waiting.push(work)).record(
    opening,
    outcome,
  )
  await vi.advanceTimersByTimeAsync(5)
  await recording
}

async function rest(): Promise<void> {
  await vi.advanceTimersByTimeAsync(MINUTE_MS)
  await Promise.all(waiting)
}

const recordedCalls = () => recorded.reduce((sum, { count = 1 }) => sum + count, 0)

it('six hundred refusals of a key are some records, in which none is missing', async () => {
  for (let call = 0; call < 600; call += 1) await refuse('key')
  expect(recorded).toHaveLength(5)
  await rest()
  expect(recorded).toHaveLength(6)
  expect(recorded.at(-1)).toMatchObject({ id: 'call_6', status: 401, count: 595 })
})

it('refusals over minutes are all recorded, with a bound for each minute', async () => {
  for (let call = 0; call < 1_000; call += 1) {
    await refuse('key')
    await vi.advanceTimersByTimeAsync(295)
  }
  await rest()
  expect(recordedCalls()).toBe(1_000)
  // Five minutes and a bit: five single records and at most three gathered ones each.
  expect(recorded.length).toBeLessThanOrEqual(6 * 8)
})

it('keys and reasons are counted apart; failures of our own are recorded one by one', async () => {
  for (let call = 0; call < 5; call += 1) {
    await refuse('one')
    await refuse('other')
    await refuse('one', 429, 'rate_limited')
  }
  expect(recorded).toHaveLength(15)
  for (let call = 0; call < 20; call += 1) await refuse('one', 500, 'internal_error')
  expect(recorded).toHaveLength(35)
})
