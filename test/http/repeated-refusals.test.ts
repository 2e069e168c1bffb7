import { beforeAll, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntries } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'

/** Records of one reason, single and of the first seconds, of the two minutes that a test can touch. */
const MOST_RECORDS = 2 * 8
const CALLS = 40

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const list = (key: string) => send(`${gateway().baseUrl}/v1/models`, { headers: bearer(key) })

async function repeat(key: string): Promise<number[]> {
  const statuses: number[] = []
  for (let call = 0; call < CALLS; call += 10) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => list(key)))
    statuses.push(...answers.map(({ status }) => status))
  }
  return statuses
}

const recordsOf = async (keyId: string) =>
  (await auditEntries(gateway(), tenant, { key_id: keyId })).filter(({ kind }) => kind === 'call')

it('calls with a revoked key are limited apart from those of its user, and get few records', async () => {
  const user = await addMember(gateway(), tenant.base, { rate_limit_per_minute: 15 })
  const [revoked, valid] = await Promise.all([1, 2].map(() => addKey(gateway(), tenant.base, user)))
  await administrator(gateway()).ask('DELETE', `${tenant.base}/keys/${revoked?.id}`)
  const statuses = await repeat(revoked?.key ?? '')
  expect(new Set(statuses)).toEqual(new Set([401, 429]))
  // A window can end in between.
  expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(2 * 15)
  const refused = await list(revoked?.key ?? '')
  expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  expect((await list(valid?.key ?? '')).status).toBe(200)
  const records = await recordsOf(revoked?.id ?? '')
  for (const status of [401, 429]) {
    const count = records.filter((record) => record.status === status).length
    expect(count).toBeGreaterThanOrEqual(1)
    expect(count).toBeLessThanOrEqual(MOST_RECORDS)
  }
})

it('calls of a valid key above its limit get few records', async () => {
  const user = await addMember(gateway(), tenant.base, { rate_limit_per_minute: 1 })
  const key = await addKey(gateway(), tenant.base, user)
  expect(await repeat(key.key)).toContain(429)
  const records = (await recordsOf(key.id)).filter(({ status }) => status === 429)
  expect(records.length).toBeGreaterThanOrEqual(1)
  expect(records.length).toBeLessThanOrEqual(MOST_RECORDS)
})
