import { describe, expect, it, vi } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import { callKind, callModel } from '../harness/model-calls.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'

describe('an organization whose ledger has four shards', () => {
  it('spends one balance, has one chain for each shard, and revokes a key everywhere at once', async () => {
    const { ask } = administrator(gateway())
    const tenant = await createTenant(gateway())
    await ask('PUT', tenant.base, { ledger_shards: 4 })
    const { ledger_shards: shards } = await ask<{ ledger_shards: number }>('GET', tenant.base)
    expect(shards).toBe(4)
    const users = await Promise.all(Array.from({ length: 8 }, () => addMember(gateway(), tenant.base)))
    const keys = await Promise.all(users.map((userId) => addKey(gateway(), tenant.base, userId)))
    const call = (key: string) => callModel(gateway(), callKind('chat'), { key, text: 'hello' })
    const before = await ask<{ balance: number }>('GET', `${tenant.base}/credits`)
    const results = await Promise.all([...keys, ...keys].map(({ key }) => call(key)))
    expect(results.map(({ status }) => status)).toEqual(results.map(() => 200))
    const after = await settled(tenant)
    const spent = await query(
      gateway(),
      "select shard, sum(credits_settled)::int as cost from audit_records where organization_id = $1 and kind = 'call' group by shard",
      [tenant.organizationId],
    )
    expect(spent.length).toBeGreaterThan(1)
    expect(spent.reduce((sum, { cost }) => sum + Number(cost), 0)).toBe(before.balance - after.balance)
    for (const { shard } of spent) {
      const verified = await ask<{ ok: boolean }>('GET', `${tenant.base}/audit/verify?shard=${shard}`)
      expect(verified.ok).toBe(true)
    }
    for (const { id } of keys) await ask('DELETE', `${tenant.base}/keys/${id}`)
    const refused = await Promise.all(keys.map(({ key }) => call(key)))
    expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 401))
  })
  it('leaves the whole limit to one user, also at once when nothing is known of the other shards', async () => {
    const { ask } = administrator(gateway())
    const limit = { ledger_shards: 4, rate_limit_per_minute: 8 }
    const tenant = await createTenant(gateway(), { organization: limit })
    const call = () => callModel(gateway(), callKind('chat'), { key: tenant.key, text: 'hello' })
    const first = await Promise.all(Array.from({ length: 8 }, call))
    expect(first.map(({ status }) => status)).toEqual(first.map(() => 200))
    const more = await Promise.all(Array.from({ length: 8 }, call))
    expect(more.map(({ status }) => status)).toContain(429)
    expect(await ask('GET', tenant.base)).toMatchObject(limit)
  })

  it('changes the number of its shards while calls run', { timeout: 120_000 }, async () => {
    const { ask } = administrator(gateway())
    const tenant = await createTenant(gateway())
    const users = await Promise.all(Array.from({ length: 6 }, () => addMember(gateway(), tenant.base)))
    const keys = await Promise.all(users.map((userId) => addKey(gateway(), tenant.base, userId)))
    const before = await ask<{ balance: number }>('GET', `${tenant.base}/credits`)
    const requests: Array<{ status: number | null; requestId: string | null }> = []
    let isChanging = true
    const callers = keys.map(async ({ key }) => {
      while (isChanging) requests.push(await callModel(gateway(), callKind('chat'), { key, text: 'hello' }))
    })
    for (const shards of [4, 1, 16, 2]) {
      await ask('PUT', tenant.base, { ledger_shards: shards })
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    isChanging = false
    await Promise.all(callers)
    expect(new Set(requests.map(({ status }) => status))).toEqual(new Set([200]))
    const after = await settled(tenant)
    const records = await query(
      gateway(),
      "select shard, request_id, credits_settled from audit_records where organization_id = $1 and kind = 'call'",
      [tenant.organizationId],
    )
    expect(records.map((row) => row.request_id).toSorted()).toEqual(
      requests.map(({ requestId }) => requestId).toSorted(),
    )
    const spent = records.reduce((sum, row) => sum + Number(row.credits_settled), 0)
    expect(spent).toBe(before.balance - after.balance)
    for (const shard of new Set(records.map((row) => Number(row.shard)))) {
      const verified = await ask<{ ok: boolean }>('GET', `${tenant.base}/audit/verify?shard=${shard}`)
      expect(verified.ok).toBe(true)
    }
  })
})

/** Waits until no call is open, no credits are on their way and Postgres has everything. @returns the balance then. */
function settled({ base, organizationId }: Tenant) {
  const { ask } = administrator(gateway())
  return vi.waitFor(
    async () => {
      const credits = await ask<{ balance: number; reserved: number }>('GET', `${base}/credits`)
      expect(credits.reserved).toBe(0)
      expect(await ask('POST', `${base}/ledger/flush`)).toEqual({ pending: 0 })
      const [entries] = await query(
        gateway(),
        'select sum(amount)::bigint as total from credit_entries where organization_id = $1',
        [organizationId],
      )
      expect(Number(entries?.total)).toBe(credits.balance)
      return credits
    },
    { timeout: 10_000, interval: 100 },
  )
}
