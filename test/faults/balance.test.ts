import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { contend, createBusyTenant } from '../harness/contention.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { callKind, callModel, SCRIPTED_KINDS } from '../harness/model-calls.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'

describe('200 calls at once on a balance for 50', () => {
  let gateway: StartedGateway
  beforeAll(async () => {
    gateway = await startGateway({
      bundleDirectory: inject('bundleDirectory'),
      // With so many concurrent calls Redis may be slow, which would lower the rate limit.
      variables: { LIMITS_TIMEOUT_MS: '20000', DEGRADED_RATE_LIMIT: '1000000', LEDGER_FLUSH_MS: '100' },
    })
  })
  afterAll(() => gateway?.stop())

  it.each([
    ['whole chat answers', ['chat'], 0],
    ['chat streams', ['chat stream'], 0],
    ['whole messages', ['messages'], 0],
    ['message streams', ['messages stream'], 0],
    ['streams half of which are left', ['chat stream'], 25],
    ['answers half of which nobody waits for', ['messages'], 25],
  ])('admits exactly 50: %s', async (_, names, leaving) => {
    const contention = { kinds: names.map(callKind), calls: 200, affordable: 50, leaving }
    const { held, answered, refused } = await contend(gateway, contention)
    expect({ held, answered: answered.length, refused: refused.length }).toEqual({
      held: 50,
      answered: 50 - leaving,
      refused: 150,
    })
  })

  it('admits exactly what fits of calls of every kind', async () => {
    await contend(gateway, { kinds: SCRIPTED_KINDS, calls: 200, affordable: 50, leaving: 10 })
  })

  it('never spends more than there is while credits come back and are spent again', async () => {
    const tenant = await createBusyTenant(gateway, 10_000)
    const results = await Promise.all(
      Array.from({ length: 200 }, (_, index) => {
        const kind = SCRIPTED_KINDS[index % SCRIPTED_KINDS.length] ?? callKind('chat')
        const leaving = index % 5 === 0 ? { afterMilliseconds: index % 40 } : undefined
        const text = `script:long-stream tokens=${20 + (index % 60)}`
        return callModel(gateway, kind, {
          key: tenant.key,
          text,
          ...(leaving && { leaving }),
          boundMilliseconds: 60_000,
        })
      }),
    )
    expect(results.filter(({ end }) => end === 'hung' || end === 'broken')).toEqual([])
    const { balance, calls } = await expectWholeLedger(gateway, tenant, results)
    expect(calls.filter(({ status }) => status === 200).length).toBeGreaterThan(5)
    expect(results.filter(({ status }) => status === 429).length).toBeGreaterThan(5)
    expect(balance).toBe(10_000 - calls.reduce((sum, { cost }) => sum + cost, 0))
  })
})
