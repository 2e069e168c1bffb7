import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { contend, createBusyTenant } from '../harness/contention.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { type CallResult, callKind, callModel, SCRIPTED_KINDS } from '../harness/model-calls.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { marker, seenRequests } from '../harness/upstream.ts'

/** A short form of what test/faults tries at length. */
describe('the ledger of an organization', () => {
  let gateway: StartedWorker
  beforeAll(async () => {
    // A burst on a busy machine may find Redis slow, which would lower the rate limit.
    const variables = { LIMITS_TIMEOUT_MS: '20000', DEGRADED_RATE_LIMIT: '1000000' }
    gateway = await startWorker(variables)
  })
  afterAll(() => gateway?.stop())

  it.each([
    ['whole answers', ['chat']],
    ['streams', ['messages stream']],
    ['both', ['chat', 'chat stream', 'messages', 'messages stream']],
  ])('admits exactly what its balance is for: %s', async (_, names) => {
    const contention = { kinds: names.map(callKind), calls: 80, affordable: 20 }
    const { held } = await contend(gateway, contention)
    if (names.length === 1) expect(held).toBe(20)
  })

  it('is whole after clients left at any point and upstreams failed in every way', async () => {
    const tenant = await createBusyTenant(gateway, 100_000_000)
    const text = marker()
    const scripts = [
      'canned',
      'stall',
      'long-stream tokens=40 delay=5',
      'mid-stream-cut',
      'error-500',
      'empty-body',
    ]
    const leavings = [
      { afterMilliseconds: 3 },
      { afterMilliseconds: 30 },
      { afterPieces: 0 },
      { afterPieces: 2 },
    ]
    const calls: Array<Promise<CallResult>> = []
    for (const kind of SCRIPTED_KINDS) {
      for (const [index, script] of scripts.entries()) {
        const options = { key: tenant.key, text: `${text} script:${script}` }
        calls.push(
          callModel(gateway, kind, { ...options, leaving: leavings[index % 4] ?? { afterPieces: 1 } }),
        )
        if (script !== 'stall') calls.push(callModel(gateway, kind, options))
      }
    }
    const results = await Promise.all(calls)
    expect(results.filter(({ end }) => end === 'hung')).toEqual([])
    const { calls: recorded } = await expectWholeLedger(gateway, tenant, results)
    const dispatched = await seenRequests(gateway, text)
    expect(recorded.length).toBeGreaterThanOrEqual(dispatched.length)
    expect(recorded.length).toBeLessThanOrEqual(results.length)
    await vi.waitFor(async () => {
      const open = (await seenRequests(gateway, text)).filter(({ script, finished, clientClosedAt }) => {
        return script === 'stall' && !finished && clientClosedAt === null
      })
      expect(open).toEqual([])
    })
  })
})
