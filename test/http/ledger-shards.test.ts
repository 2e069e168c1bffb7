import { describe, expect, it, vi } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import { callKind, callModel } from '../harness/model-calls.ts'
import { addKey, addMember, administrator, createTenant } from './support/tenant.ts'

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
    const after = await vi.waitFor(async () => {
      const credits = await ask<{ balance: number; reserved: number }>('GET', `${tenant.base}/credits`)
      expect(credits.reserved).toBe(0)
      expect(await ask('POST', `${tenant.base}/ledger/flush`)).toEqual({ pending: 0 })
      return credits
    })
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
})
