import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { organizationEpochKey, publishEpoch } from '../../../src/governance/epochs.ts'
import { redisAt } from './fixtures.ts'
import { type Service, startStandIn } from './stand-ins.ts'

let redis: Service
beforeAll(async () => {
  redis = await startStandIn('redis', [], { LOCAL_REDIS_TOKEN: 'local-token' })
})
afterAll(() => redis?.close())

describe('epochs in Redis', () => {
  it('are only ever raised, whoever comes late, and kept for a minute', async () => {
    const key = organizationEpochKey(randomUUID())
    const client = redisAt(redis.url)
    await publishEpoch(client, key, 5)
    await publishEpoch(client, key, 3)
    expect(await client.get(key)).toBe(5)
    await Promise.all([9, 2, 10, 7, 1, 6].map((epoch) => publishEpoch(redisAt(redis.url), key, epoch)))
    expect(await client.get(key)).toBe(10)
    const lifetime = await client.pttl(key)
    expect(lifetime).toBeGreaterThan(0)
    expect(lifetime).toBeLessThanOrEqual(60_000)
  })
})
