import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { CALL_KINDS, type CallResult, callKind, callModel, errorOf } from '../harness/model-calls.ts'
import { auditEntryOf } from '../http/support/records.ts'
import type { Tenant } from '../http/support/tenant.ts'
import type { FaultMode } from './support/fault-proxy.ts'
import { type FaultyGateway, startFaultyGateway } from './support/faulty-gateway.ts'

/** Above what one test needs, below what it would take without a cap. */
const CAP = 20
const MODES: Array<[string, FaultMode]> = [
  ['refuses connections', 'refuse'],
  ['never answers', 'hang'],
  ['answers errors', 'error'],
  ['is slow', { delayMilliseconds: 1_500 }],
  ['breaks off before it answers', 'lose_answers'],
]

describe('while Redis', () => {
  let faulty: FaultyGateway
  beforeAll(async () => {
    faulty = await startFaultyGateway({ DEGRADED_RATE_LIMIT: CAP, LIMITS_TIMEOUT_MS: 300 })
  })
  afterAll(() => faulty?.stop())
  afterEach(() => faulty.redis.become('pass'))

  const callAll = (tenant: Tenant): Promise<CallResult[]> =>
    Promise.all(
      CALL_KINDS.map((kind) => callModel(faulty.gateway, kind, { key: tenant.key, text: 'carry on' })),
    )
  const flagsOf = async (tenant: Tenant, { requestId }: CallResult) =>
    (await auditEntryOf(faulty.gateway, tenant, requestId)).record.flags

  it.each(MODES)('%s, calls go on, bounded and flagged, until it is back', async (_, mode) => {
    const known = await createBusyTenant(faulty.gateway, 1_000_000_000)
    const unknown = await createBusyTenant(faulty.gateway, 1_000_000_000)
    const before = await callAll(known)
    await faulty.redis.become(mode)
    for (const tenant of [known, unknown]) {
      const during = await callAll(tenant)
      expect(during.map(({ status, end }) => ({ status, end }))).toEqual(
        during.map(() => ({ status: 200, end: 'complete' })),
      )
      for (const result of during) {
        expect(await flagsOf(tenant, result)).toContain('limits_degraded')
        expect(result.milliseconds).toBeLessThan(5_000)
      }
      await expectWholeLedger(faulty.gateway, tenant, tenant === known ? [...before, ...during] : during)
    }
    await faulty.redis.become('pass')
    const recovered = await createBusyTenant(faulty.gateway, 1_000_000_000)
    const chat = callKind('chat')
    await vi.waitFor(
      async () => {
        const result = await callModel(faulty.gateway, chat, { key: recovered.key, text: 'and now' })
        expect(await flagsOf(recovered, result)).not.toContain('limits_degraded')
      },
      { timeout: 8_000, interval: 500 },
    )
  })

  it('is away, a caller gets the lower limit instead of none, in its own envelope', async () => {
    await faulty.redis.become('refuse')
    const own = await createBusyTenant(faulty.gateway, 1_000_000_000)
    const kinds = [callKind('chat'), callKind('messages stream')]
    const results = await Promise.all(
      Array.from({ length: 3 * CAP }, (_, index) =>
        callModel(faulty.gateway, kinds[index % 2] ?? callKind('chat'), { key: own.key, text: 'me too' }),
      ),
    )
    const allowed = results.filter(({ status }) => status === 200)
    const refused = results.filter(({ status }) => status === 429)
    expect(allowed.length + refused.length).toBe(results.length)
    // The window is a minute of the clock, and may have changed between two calls.
    expect([CAP, 2 * CAP]).toContain(allowed.length)
    for (const result of refused) {
      expect(errorOf(result)).toMatchObject({ type: 'rate_limit_error' })
      expect(Number(result.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    }
    await expectWholeLedger(faulty.gateway, own, results)
  })
})
