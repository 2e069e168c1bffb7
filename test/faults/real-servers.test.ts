import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { startRedis } from '../../scripts/local/redis/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import { contend, createBusyTenant } from '../harness/contention.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { type CallResult, callKind, callModel, errorOf, SCRIPTED_KINDS } from '../harness/model-calls.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { addKey, addMember, createTenant, type Tenant } from '../harness/tenant.ts'
import {
  missingServers,
  type RealServer,
  startRealPostgres,
  startRealRedis,
  tellSkipped,
} from '../local/real-servers.ts'

const missing = missingServers()
if (missing.length > 0) tellSkipped('contention on real servers', missing.join(' and no '))

const LIMIT = 50
const MINUTE_MS = 60_000

describe.skipIf(missing.length > 0)('with a real PostgreSQL and a real Redis', () => {
  let gateway: StartedGateway
  const cleanUps: Array<() => Promise<void>> = []
  beforeAll(async () => {
    const [postgres, redis] = await Promise.all([startRealPostgres(), startRealRedis()])
    cleanUps.push(() => stopAll([postgres, redis]))
    const token = 'real-redis'
    const front: RunningServer = await startRedis({ redisUrl: redis.url, token })
    cleanUps.push(front.close)
    gateway = await startGateway({
      bundleDirectory: inject('bundleDirectory'),
      variables: { LIMITS_TIMEOUT_MS: '20000', DEGRADED_RATE_LIMIT: '1000000', LEDGER_FLUSH_MS: '100' },
      postgresUrl: postgres.url,
    })
    cleanUps.push(gateway.stop)
    await gateway.restartWorkerd({ UPSTASH_REDIS_REST_URL: front.url, UPSTASH_REDIS_REST_TOKEN: token })
  }, 120_000)
  afterAll(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  })

  it.each([
    ['whole answers', ['chat'], 0],
    ['streams', ['messages stream'], 25],
  ])('admits exactly 50 of 200 calls on a balance for 50: %s', async (_, names, leaving) => {
    const contention = { kinds: names.map(callKind), calls: 200, affordable: 50, leaving }
    const { held, refused } = await contend(gateway, contention)
    expect({ held, refused: refused.length }).toEqual({ held: 50, refused: 150 })
  })

  it('settles two organizations side by side', async () => {
    const tenants = await Promise.all([1, 2].map(() => createBusyTenant(gateway, 1_000_000_000)))
    const results = await Promise.all(
      tenants.map((tenant) => {
        const calls = Array.from({ length: 60 }, (_, index) => {
          const kind = SCRIPTED_KINDS[index % SCRIPTED_KINDS.length] ?? callKind('chat')
          return callModel(gateway, kind, { key: tenant.key, text: 'hello', boundMilliseconds: 60_000 })
        })
        return Promise.all(calls)
      }),
    )
    for (const [index, tenant] of tenants.entries()) {
      expect(results[index]?.every(({ status }) => status === 200)).toBe(true)
      await expectWholeLedger(gateway, tenant, results[index] ?? [])
    }
  })

  /** Calls at once with several keys, all within one minute of the clock: a window that ends lets others in. */
  async function burst(keysOf: () => Promise<{ tenant: Tenant; keys: string[] }>) {
    for (;;) {
      const { tenant, keys } = await keysOf()
      const begun = Math.floor(Date.now() / MINUTE_MS)
      const calls = Array.from({ length: 4 * LIMIT }, (_, index) => {
        const options = { key: keys[index % keys.length] ?? '', text: 'hello', boundMilliseconds: 60_000 }
        return callModel(gateway, callKind(index % 2 === 0 ? 'chat' : 'messages stream'), options)
      })
      const results = await Promise.all(calls)
      if (Math.floor(Date.now() / MINUTE_MS) === begun) return { tenant, results }
    }
  }

  function expectLimited(results: CallResult[]): void {
    const refused = results.filter(({ status }) => status === 429)
    expect(results.filter(({ status }) => status === 200)).toHaveLength(LIMIT)
    expect(refused).toHaveLength(results.length - LIMIT)
    for (const result of refused) {
      expect(errorOf(result)).toMatchObject({ type: 'rate_limit_error' })
      const seconds = Number(result.headers['retry-after'])
      expect(seconds).toBeGreaterThanOrEqual(1)
      expect(seconds).toBeLessThanOrEqual(MINUTE_MS / 1_000)
      expect(result.headers['x-should-retry']).toBeUndefined()
    }
  }

  it("lets exactly a user's limit of concurrent calls through", async () => {
    const { tenant, results } = await burst(async () => {
      const organization = { rate_limit_per_minute: 1_000_000 }
      const own = await createTenant(gateway, { organization, user: { rate_limit_per_minute: LIMIT } })
      return { tenant: own, keys: [own.key] }
    })
    expectLimited(results)
    await expectWholeLedger(gateway, tenant, results)
  })

  it("lets exactly an organization's limit through, over all its users", async () => {
    const { tenant, results } = await burst(async () => {
      const organization = { rate_limit_per_minute: LIMIT, user_rate_limit_per_minute: 1_000_000 }
      const own = await createTenant(gateway, { organization })
      const other = await addKey(gateway, own.base, await addMember(gateway, own.base))
      return { tenant: own, keys: [own.key, other.key] }
    })
    expectLimited(results)
    await expectWholeLedger(gateway, tenant, results)
  })
})

async function stopAll(servers: RealServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()))
}
