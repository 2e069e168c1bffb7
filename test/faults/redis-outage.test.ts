import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { CALL_KINDS, type CallResult, callKind, callModel, errorOf } from '../harness/model-calls.ts'
import { administrator, type Tenant } from '../harness/tenant.ts'
import type { FaultMode } from './support/fault-proxy.ts'
import { type FaultyGateway, startFaultyGateway } from './support/faulty-gateway.ts'

const USER_LIMIT = 20
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
    faulty = await startFaultyGateway({ LIMITS_TIMEOUT_MS: 300 })
  })
  afterAll(() => faulty?.stop())
  afterEach(() => faulty.redis.become('pass'))

  const callAll = (tenant: Tenant): Promise<CallResult[]> =>
    Promise.all(
      CALL_KINDS.map((kind) => callModel(faulty.gateway, kind, { key: tenant.key, text: 'carry on' })),
    )

  it.each(MODES)('%s, calls of known and of unknown callers go on', async (_, mode) => {
    const known = await createBusyTenant(faulty.gateway, 1_000_000_000)
    const unknown = await createBusyTenant(faulty.gateway, 1_000_000_000)
    const before = await callAll(known)
    await faulty.redis.become(mode)
    for (const tenant of [known, unknown]) {
      const during = await callAll(tenant)
      expect(during.map(({ status, end }) => ({ status, end }))).toEqual(
        during.map(() => ({ status: 200, end: 'complete' })),
      )
      for (const result of during) expect(result.milliseconds).toBeLessThan(5_000)
      await expectWholeLedger(faulty.gateway, tenant, tenant === known ? [...before, ...during] : during)
    }
  })

  it('is away, limits of calls hold exactly, each in its own envelope', async () => {
    await faulty.redis.become('refuse')
    const own = await createBusyTenant(faulty.gateway, 1_000_000_000)
    const { ask } = administrator(faulty.gateway)
    await ask('PUT', own.base, { user_rate_limit_per_minute: USER_LIMIT })
    const kinds = [callKind('chat'), callKind('messages stream')]
    const results = await Promise.all(
      Array.from({ length: 3 * USER_LIMIT }, (_, index) =>
        callModel(faulty.gateway, kinds[index % 2] ?? callKind('chat'), { key: own.key, text: 'me too' }),
      ),
    )
    const allowed = results.filter(({ status }) => status === 200)
    const refused = results.filter(({ status }) => status === 429)
    expect(allowed.length + refused.length).toBe(results.length)
    // The window is a minute of the clock, and may have changed between two calls.
    expect(allowed.length).toBeGreaterThanOrEqual(USER_LIMIT)
    expect(allowed.length).toBeLessThanOrEqual(2 * USER_LIMIT)
    for (const result of refused) {
      expect(errorOf(result)).toMatchObject({ type: 'rate_limit_error' })
      expect(Number(result.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    }
    await expectWholeLedger(faulty.gateway, own, results)
  })

  it('is away, a key that is revoked fails on its next call', async () => {
    const own = await createBusyTenant(faulty.gateway, 1_000_000_000)
    await faulty.redis.become('refuse')
    const call = () => callModel(faulty.gateway, callKind('chat'), { key: own.key, text: 'still here' })
    expect((await call()).status).toBe(200)
    const { ask } = administrator(faulty.gateway)
    const { data } = await ask<{ data: Array<{ id: string }> }>('GET', `${own.base}/keys`)
    for (const { id } of data) await ask('DELETE', `${own.base}/keys/${id}`)
    expect((await call()).status).toBe(401)
  })
})
