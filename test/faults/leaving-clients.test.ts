import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { type CallResult, callModel, type Leaving, SCRIPTED_KINDS } from '../harness/model-calls.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { uniqueName } from '../harness/tenant.ts'
import { seenRequest, seenRequests } from '../harness/upstream.ts'
import { SEEDS, TRIALS } from './support/faulty-gateway.ts'
import { Random } from './support/random.ts'

/** Design: a client that leaves aborts the upstream within a second. */
const ABORTED_WITHIN_MS = 1_000
const AT_ONCE = 8

let gateway: StartedGateway
beforeAll(async () => {
  gateway = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    variables: { LIMITS_TIMEOUT_MS: '20000', DEGRADED_RATE_LIMIT: '1000000', LEDGER_FLUSH_MS: '100' },
  })
})
afterAll(() => gateway?.stop())

/** Scripts of the upstream until the client leaves: with events first, or silent. */
const STREAM_SCRIPTS = ['stall', 'long-stream tokens=500 delay=5']
const SILENT_SCRIPTS = ['slow-headers signal=never', 'silent-stream']

interface Trial {
  marker: string
  leftAt: number
  result: CallResult
}

/** Leaves after a random time, when the upstream has the call, or after the first pieces of a stream. */
async function leaveOnce(key: string, random: Random): Promise<Trial> {
  const marker = uniqueName('leaving')
  const how = random.pick(['time', 'dispatched', 'pieces'])
  const kinds = how === 'pieces' ? SCRIPTED_KINDS.filter(({ stream }) => stream) : SCRIPTED_KINDS
  const kind = random.pick(kinds)
  const scripts = kind.stream && (how === 'pieces' || random.chance(0.5)) ? STREAM_SCRIPTS : SILENT_SCRIPTS
  const text = `${marker} script:${random.pick(scripts)}`
  const leave = new AbortController()
  const leaving: Leaving | undefined =
    how === 'pieces'
      ? { afterPieces: random.integer(0, 2) }
      : how === 'time'
        ? { afterMilliseconds: random.integer(0, 200) }
        : undefined
  const pause = random.integer(0, 20)
  const call = callModel(gateway, kind, { key, text, signal: leave.signal, ...(leaving && { leaving }) })
  if (how === 'dispatched') {
    await seenRequest(gateway, marker)
    setTimeout(() => leave.abort(), pause)
  }
  return { marker, result: await call, leftAt: Date.now() }
}

describe('clients that leave at any moment', () => {
  it.each(SEEDS)('end their upstream call and are settled once (seed %i)', async (seed) => {
    const random = new Random(seed)
    const tenant = await createBusyTenant(gateway, 1_000_000_000)
    const trials: Trial[] = []
    const worker = async (): Promise<void> => {
      while (trials.length < TRIALS) trials.push(await leaveOnce(tenant.key, random))
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    expect(trials.filter(({ result }) => result.end !== 'left').map(({ result }) => result)).toEqual([])

    const dispatched = await vi.waitFor(
      async () => {
        const seen = await seenRequests(gateway, 'leaving-')
        const open = seen.filter(({ finished, clientClosedAt }) => !finished && clientClosedAt === null)
        if (open.length > 0) throw new Error(`${open.length} upstream calls go on`)
        return seen
      },
      { timeout: 5_000, interval: 50 },
    )
    const leftAt = new Map(trials.map(({ marker, leftAt }) => [marker, leftAt]))
    const own = dispatched.filter(({ body }) => leftAt.has(/leaving-\w+/.exec(body)?.[0] ?? ''))
    const late = own.filter(({ body, clientClosedAt, receivedAt }) => {
      const left = leftAt.get(/leaving-\w+/.exec(body)?.[0] ?? '') ?? 0
      return (clientClosedAt ?? 0) - Math.max(left, Number(receivedAt)) > ABORTED_WITHIN_MS
    })
    expect(late).toEqual([])
    expect(own.length).toBeGreaterThan(TRIALS / 4)

    const results = trials.map(({ result }) => result)
    const { calls } = await expectWholeLedger(gateway, tenant, results)
    expect(calls.length).toBeGreaterThanOrEqual(own.length)
    expect(calls.length).toBeLessThanOrEqual(trials.length)
    expect(calls.filter(({ status }) => status !== 499)).toEqual([])
    expect(calls.filter(({ flags }) => flags.includes('settled_by_alarm'))).toEqual([])
  })
})
