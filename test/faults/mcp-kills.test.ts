import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { query } from '../harness/gateway.ts'
import { createIntegration, mcpTool, startMcpServer } from '../harness/integrations.ts'
import { createMcpTenant, sendMcp } from '../harness/mcp.ts'
import { settledCredits } from '../harness/records.ts'
import { type Answer, jsonOf } from '../harness/send.ts'
import { type FaultyGateway, startFaultyGateway, TRIALS } from './support/faulty-gateway.ts'
import { Random } from './support/random.ts'

/** Calls at the same time, and how often the runtime is killed in the middle of them. */
const CALLS = 4
const KILLS = Math.ceil(TRIALS / 6)
const PRICE = 1_000
/** A call without an outcome is settled when its lease ends: 60 s of the call and 30 s more. */
const LEASE_MS = 90_000

let faulty: FaultyGateway
beforeAll(async () => {
  faulty = await startFaultyGateway()
})
afterAll(() => faulty?.stop())

interface Call {
  text: string
  answer: Answer | null
}

/** The record of each call of the tool: id of the request, status, credits. */
const recordsOf = (organizationId: string, tool: string) =>
  query(
    faulty.gateway,
    `select request_id, status, credits_settled, body from audit_records
      where organization_id = $1 and kind = 'call' and body::jsonb ->> 'tool' = $2`,
    [organizationId, tool],
  )

describe('workerd is killed in the middle of calls of a tool with effects', () => {
  it('no call is executed twice, and every executed one has one record', { timeout: 300_000 }, async () => {
    const { gateway } = faulty
    const random = new Random(1)
    const tenant = await createMcpTenant(gateway)
    const faults = { 'tools/call': { kind: 'slow', milliseconds: 120 } }
    const server = await startMcpServer(gateway, { tools: [mcpTool('pay')], faults })
    const { slug } = await createIntegration(gateway, tenant, { url: server.url, price: PRICE })
    const name = `${slug}_pay`
    const before = await settledCredits(gateway, tenant)
    const calls: Call[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      const made = Array.from({ length: CALLS }, async (_, index): Promise<Call> => {
        const text = `effect ${kill}.${index}.`
        const params = { name, arguments: { text } }
        const answer = await sendMcp(gateway, tenant.key, 'tools/call', params).catch(() => null)
        return { text, answer }
      })
      // A busy machine may answer none in the time: every third kill comes after an answer.
      const moment = random.integer(0, 400)
      await (kill % 3 === 0 ? Promise.race(made) : new Promise((done) => setTimeout(done, moment)))
      await gateway.workerd.kill('SIGKILL')
      calls.push(...(await Promise.all(made)))
      await gateway.workerd.restart()
    }
    const executed = (await server.requests())
      .filter(({ method }) => method === 'tools/call')
      .map(({ params }) => (params as { arguments: { text: string } }).arguments.text)
    expect(new Set(executed).size).toBe(executed.length)
    const completed = calls.filter(({ answer }) => answer?.status === 200)
    for (const { text, answer } of completed) {
      expect(executed).toContain(text)
      expect(jsonOf(answer as Answer)).toHaveProperty('result')
    }
    // The seed makes both kinds: calls that were answered, and calls that were cut.
    expect(completed.length).toBeGreaterThan(0)
    expect(completed.length).toBeLessThan(calls.length)

    await vi.waitFor(
      async () => {
        const { reserved } = await settledCredits(gateway, tenant)
        expect(reserved).toBe(0)
        expect((await recordsOf(tenant.organizationId, name)).length).toBeGreaterThanOrEqual(executed.length)
      },
      { timeout: LEASE_MS + 40_000, interval: 1_000 },
    )
    const records = await recordsOf(tenant.organizationId, name)
    const requestIds = records.map(({ request_id: id }) => id)
    expect(new Set(requestIds).size).toBe(requestIds.length)
    expect(records.length).toBeLessThanOrEqual(calls.length)
    for (const { answer } of completed) expect(requestIds).toContain(answer?.headers['x-request-id'])
    // A call that was cut is charged, since it may have been executed.
    const charged = records.reduce((sum, { credits_settled: credits }) => sum + Number(credits), 0)
    expect(charged).toBe(records.length * PRICE)
    expect((await settledCredits(gateway, tenant)).balance).toBe(before.balance - charged)
  })
})
