import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { query, upstreamControl } from '../harness/gateway.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { CALL_KINDS, type CallResult, callModel, SCRIPTED_KINDS } from '../harness/model-calls.ts'
import { type Tenant, uniqueName } from '../harness/tenant.ts'
import { type FaultyGateway, startFaultyGateway, TRIALS } from './support/faulty-gateway.ts'

const CRASHES = Math.ceil(TRIALS / 30)

let faulty: FaultyGateway
beforeAll(async () => {
  faulty = await startFaultyGateway({
    // Only a crash ends the calls of these tests: the lease alone bounds how long their credits stay reserved.
    UPSTREAM_HEADERS_TIMEOUT_MS: 600_000,
    UPSTREAM_ANSWER_TIMEOUT_MS: 600_000,
    UPSTREAM_EVENT_TIMEOUT_MS: 60_000,
    LEDGER_LEASE_MS: 1_000,
  })
})
afterAll(() => faulty?.stop())

/** How many records of calls Postgres has, asked past the gateway: nothing but its own alarm brings them. */
async function recorded(tenant: Tenant): Promise<number> {
  const [row] = await query(
    faulty.gateway,
    "select count(*)::int as n from audit_records where organization_id = $1 and kind = 'call'",
    [tenant.organizationId],
  )
  return Number(row?.n)
}

/** Calls that the upstream holds in the middle of a stream and before a whole answer. */
async function holdCalls(tenant: Tenant, each: number) {
  const { gateway } = faulty
  const control = upstreamControl(gateway)
  const signal = uniqueName('crash')
  const calls = SCRIPTED_KINDS.flatMap((kind) =>
    Array.from({ length: each }, () => {
      const script = kind.stream ? 'stall' : 'slow-headers'
      return callModel(gateway, kind, { key: tenant.key, text: `script:${script} signal=${signal}` })
    }),
  )
  await vi.waitFor(async () => expect((await control.waiting())[signal] ?? 0).toBe(calls.length), {
    timeout: 10_000,
    interval: 20,
  })
  return { results: Promise.all(calls), release: () => control.release(signal) }
}

describe('workerd killed', () => {
  it.each(Array.from({ length: CRASHES }, (_, index) => index + 1))(
    'in mid-stream and mid-call: every call is settled once by its lease (trial %i)',
    async (trial) => {
      const { gateway } = faulty
      const tenant = await createBusyTenant(gateway, 1_000_000_000)
      const before = await Promise.all(
        CALL_KINDS.map((kind) => callModel(gateway, kind, { key: tenant.key, text: 'hello' })),
      )
      const held = await holdCalls(tenant, 1 + trial)
      await gateway.workerd.kill('SIGKILL')
      const broken = await held.results
      expect(broken.every(({ end }) => end === 'broken')).toBe(true)
      await gateway.workerd.restart()
      await held.release()
      // No call wakes the ledger: its stored alarm must.
      await vi.waitFor(async () => expect(await recorded(tenant)).toBe(before.length + broken.length), {
        timeout: 20_000,
        interval: 100,
      })
      const { calls } = await expectWholeLedger(gateway, tenant, [...before, ...broken])
      const lapsed = calls.filter(({ flags }) => flags.includes('settled_by_alarm'))
      expect(lapsed).toHaveLength(broken.length)
      expect(lapsed.every(({ status, cost }) => status === 0 && cost > 0)).toBe(true)
    },
  )

  it('right after the answers, before anything reached Postgres: nothing is lost or charged twice', async () => {
    const { gateway } = faulty
    const tenant = await createBusyTenant(gateway, 1_000_000_000)
    const results: CallResult[] = []
    for (let round = 0; round < 4; round += 1) {
      const options = { key: tenant.key, text: `round ${round}` }
      results.push(...(await Promise.all(CALL_KINDS.map((kind) => callModel(gateway, kind, options)))))
      // From the second round on the caller is known, and what is recorded has nowhere to go.
      if (round === 0) await faulty.postgres.become('hang')
    }
    expect(results.every(({ status }) => status === 200)).toBe(true)
    await gateway.workerd.kill('SIGKILL')
    await faulty.postgres.become('pass')
    await gateway.workerd.restart()
    await vi.waitFor(async () => expect(await recorded(tenant)).toBe(results.length), {
      timeout: 20_000,
      interval: 100,
    })
    const { calls } = await expectWholeLedger(gateway, tenant, results)
    expect(calls).toHaveLength(results.length)
  })

  it('again and again while calls come: one record for each, and the chain goes on', async () => {
    const { gateway } = faulty
    const tenant = await createBusyTenant(gateway, 1_000_000_000)
    const results: CallResult[] = []
    for (let round = 0; round < 3; round += 1) {
      const calls = Array.from({ length: 12 }, (_, index) => {
        const kind = SCRIPTED_KINDS[index % SCRIPTED_KINDS.length] as CallResult['kind']
        return callModel(gateway, kind, { key: tenant.key, text: 'script:long-stream tokens=60 delay=10' })
      })
      // The first answer is the sign: by then the others are anywhere between their beginning and their end.
      await Promise.race(calls)
      await gateway.workerd.restart()
      results.push(...(await Promise.all(calls)))
    }
    expect(results.filter(({ end }) => end === 'hung')).toEqual([])
    const { calls } = await expectWholeLedger(gateway, tenant, results)
    expect(calls.length).toBeLessThanOrEqual(results.length)
    expect(calls.length).toBeGreaterThanOrEqual(results.filter(({ requestId }) => requestId !== null).length)
  })
})
