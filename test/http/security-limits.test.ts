import { describe, expect, it, vi } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'

const list = async ({ key }: Tenant) =>
  (await send(`${gateway().baseUrl}/v1/models`, { headers: bearer(key) })).status
const atOnce = (tenant: Tenant, calls: number) =>
  Promise.all(Array.from({ length: calls }, () => list(tenant)))
const passed = (statuses: number[]) => statuses.filter((status) => status === 200).length

describe.each([
  ['an organization', (tenant: Tenant) => tenant.base],
  ['a user', (tenant: Tenant) => `${tenant.base}/users/${tenant.userId}`],
])('the limit of %s', (_, path) => {
  const limit = (tenant: Tenant, perMinute: number) =>
    administrator(gateway()).ask('PUT', path(tenant), { rate_limit_per_minute: perMinute })

  it('holds from the next call on when it is lowered', async () => {
    const tenant = await createTenant(gateway())
    expect(await list(tenant)).toBe(200)
    await limit(tenant, 5)
    const statuses = await atOnce(tenant, 20)
    expect(passed(statuses), statuses.join()).toBeLessThanOrEqual(5)
    expect(passed(statuses)).toBeGreaterThanOrEqual(1)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
  })

  it('holds a second later at the most when it is raised', async () => {
    const tenant = await createTenant(gateway())
    await limit(tenant, 2)
    expect(await atOnce(tenant, 8)).toContain(429)
    await limit(tenant, 40)
    // A refusal is remembered for so long, so that who is limited costs nothing.
    await vi.waitFor(async () => expect(await list(tenant)).toBe(200), { timeout: 5_000, interval: 100 })
    expect(passed(await atOnce(tenant, 10))).toBe(10)
  })
})
