import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { callOutcome } from '../../../src/ledger/audit-record.ts'
import { ledgerClient } from '../../../src/ledger/client.ts'
import type { CommitBatch } from '../../../src/ledger/commits/commit.ts'
import { someOpening } from './memory-ledger.ts'

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
  const outcome = callOutcome(opening, Date.now(), { status, errorCode })
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
  await rest()
  // In three seconds: the single ones, those of the first second, and those of the two after it.
  expect(recorded).toHaveLength(7)
  expect(recorded[5]).toMatchObject({ id: 'call_6', status: 401, count: expect.any(Number) })
  expect(recordedCalls()).toBe(600)
})

it('what is lost with an isolate was refused within eight seconds', async () => {
  let longest = 0
  for (let second = 0; second < 59; second += 1) {
    await refuse('key')
    await vi.advanceTimersByTimeAsync(995)
    longest = Math.max(longest, calls - recordedCalls())
  }
  expect(longest).toBeGreaterThan(4)
  expect(longest).toBeLessThanOrEqual(9)
})

it('refusals over minutes are all recorded, with a bound for each minute', async () => {
  for (let call = 0; call < 1_000; call += 1) {
    await refuse('key')
    await vi.advanceTimersByTimeAsync(295)
  }
  await rest()
  expect(recordedCalls()).toBe(1_000)
  // Five minutes and a bit: five single records and at most eleven gathered ones each.
  expect(recorded.length).toBeLessThanOrEqual(6 * 16)
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
