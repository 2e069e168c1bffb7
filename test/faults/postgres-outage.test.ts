import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { query, upstreamControl } from '../harness/gateway.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { CALL_KINDS, type CallResult, callKind, callModel, errorOf } from '../harness/model-calls.ts'
import type { Tenant } from '../harness/tenant.ts'
import type { FaultMode } from './support/fault-proxy.ts'
import { type FaultyGateway, startFaultyGateway } from './support/faulty-gateway.ts'

const MODES: Array<[string, FaultMode]> = [
  ['refuses connections', 'refuse'],
  ['never answers', 'hang'],
  ['answers errors', 'error'],
  ['breaks off before it answers', 'lose_answers'],
]
/** The gateway gives Postgres ten seconds on the path of a call. */
const BOUND_MS = 13_000

let faulty: FaultyGateway
beforeAll(async () => {
  faulty = await startFaultyGateway()
})
afterAll(() => faulty?.stop())
afterEach(async () => {
  await Promise.all([faulty.postgres.become('pass'), faulty.redis.become('pass')])
})

const callAll = (key: string, text: string): Promise<CallResult[]> =>
  Promise.all(
    CALL_KINDS.map((kind) => callModel(faulty.gateway, kind, { key, text, boundMilliseconds: BOUND_MS })),
  )

function expectAllAnswered(results: CallResult[]): void {
  expect(results.map(({ status, end }) => ({ status, end }))).toEqual(
    results.map(() => ({ status: 200, end: 'complete' })),
  )
}

/** Every kind of call was refused as an error of ours, in its own envelope, because no key can be checked. */
function expectInternalErrors(results: CallResult[]): void {
  for (const result of results) {
    expect(result).toMatchObject({ status: 500, end: 'complete' })
    const messages = result.kind.envelope === 'messages'
    const expected = messages ? { type: 'api_error' } : { type: 'server_error', code: 'internal_error' }
    const message = 'API keys cannot be checked at the moment. Try again soon.'
    expect(errorOf(result)).toEqual({ ...expected, message })
    expect(result.requestId).toMatch(/^req_/)
  }
}

/** Records of these requests in Postgres, asked past the gateway so that nothing but its own flush brings them. */
async function recordsOf(tenant: Tenant, results: CallResult[]): Promise<number> {
  const rows = await query(
    faulty.gateway,
    'select count(*)::int as n from audit_records where organization_id = $1 and request_id = any($2)',
    [tenant.organizationId, results.map(({ requestId }) => requestId)],
  )
  return Number(rows[0]?.n)
}

describe('while Postgres', () => {
  it.each(MODES)('%s, a gateway without cached callers admits no call', async (_, mode) => {
    const tenant = await createBusyTenant(faulty.gateway, 1_000_000_000)
    await faulty.gateway.workerd.restart()
    const control = upstreamControl(faulty.gateway)
    const before = await control.lastRequest()
    await faulty.postgres.become(mode)
    expectInternalErrors(await callAll(tenant.key, 'let me in'))
    expect(await control.requests(before)).toEqual([])
    await faulty.postgres.become('pass')
    const after = await callAll(tenant.key, 'and now')
    expectAllAnswered(after)
    const { calls } = await expectWholeLedger(faulty.gateway, tenant, after)
    expect(calls).toHaveLength(after.length)
  })

  it.each(MODES)(
    '%s, known callers go on, and the audit follows by itself, every row once',
    async (_, mode) => {
      const tenant = await createBusyTenant(faulty.gateway, 1_000_000_000)
      const before = await callAll(tenant.key, 'hello')
      await vi.waitFor(async () => expect(await recordsOf(tenant, before)).toBe(before.length), {
        timeout: 10_000,
        interval: 100,
      })
      await faulty.postgres.become(mode)
      const during = [...(await callAll(tenant.key, 'first')), ...(await callAll(tenant.key, 'second'))]
      expectAllAnswered([...before, ...during])
      await faulty.postgres.become('pass')
      await vi.waitFor(async () => expect(await recordsOf(tenant, during)).toBe(during.length), {
        timeout: 20_000,
        interval: 100,
      })
      const after = await callAll(tenant.key, 'third')
      expectAllAnswered(after)
      const { calls } = await expectWholeLedger(faulty.gateway, tenant, [...before, ...during, ...after])
      expect(calls).toHaveLength(4 * CALL_KINDS.length)
    },
  )
})

describe('while Postgres and Redis are away', () => {
  let forgetful: FaultyGateway
  beforeAll(async () => {
    forgetful = await startFaultyGateway({ IDENTITY_CACHE_MS: 1_000 })
  })
  afterAll(() => forgetful?.stop())

  it.each(MODES.slice(0, 3))('(%s), nobody is let in on old rights', async (_, mode) => {
    const { gateway, postgres, redis } = forgetful
    const tenant = await createBusyTenant(gateway, 1_000_000_000)
    const callAllHere = (text: string) =>
      Promise.all(CALL_KINDS.map((kind) => callModel(gateway, kind, { key: tenant.key, text })))
    const results = await callAllHere('hello')
    expectAllAnswered(results)
    await Promise.all([postgres.become(mode), redis.become(mode)])
    // Rights are believed for as long as they may be cached, and not longer.
    await vi.waitFor(
      async () => {
        const result = await callModel(gateway, callKind('chat'), { key: tenant.key, text: 'still' })
        results.push(result)
        expect(result.status).toBe(500)
      },
      { timeout: 60_000, interval: 200 },
    )
    const control = upstreamControl(gateway)
    const last = await control.lastRequest()
    const during = await callAllHere('on old rights')
    expectInternalErrors(during)
    expect(await control.requests(last)).toEqual([])
    await Promise.all([postgres.become('pass'), redis.become('pass')])
    const { calls } = await expectWholeLedger(gateway, tenant, [...results, ...during])
    expect(calls.every(({ status }) => status === 200)).toBe(true)
  })
})
