import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePorts } from '../../scripts/node/ports.ts'
import { query } from '../harness/gateway.ts'
import { createIntegration, type IntegrationItem, refreshIntegration } from '../harness/integrations.ts'
import { createMcpTenant, listMcpTools, sendMcp } from '../harness/mcp.ts'
import { flush, settledCredits } from '../harness/records.ts'
import { type Answer, jsonOf } from '../harness/send.ts'
import type { Tenant } from '../harness/tenant.ts'
import { type FaultyGateway, startFaultyGateway, TRIALS } from './support/faulty-gateway.ts'
import { Random } from './support/random.ts'

/** Calls of each tool at the same time, and how often the upstream's process is killed in the middle of them. */
const CALLS = 3
const KILLS = Math.ceil(TRIALS / 6)
const PRICE = 1_000
const SCRIPT = join(import.meta.dirname, 'support/effects-upstream.ts')
/** The operation of the API, with its text as a member of its body. */
const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Payments', version: '1' },
  paths: {
    '/pay': {
      post: {
        operationId: 'pay',
        requestBody: {
          content: {
            'application/json': { schema: { type: 'object', properties: { text: { type: 'string' } } } },
          },
        },
        responses: { 200: { description: 'Paid.' } },
      },
    },
  },
}

let faulty: FaultyGateway
let port: number
let upstream: ChildProcess
const folder = mkdtempSync(join(tmpdir(), 'headgate-upstream-'))
const effects = join(folder, 'effects')

async function startUpstream(): Promise<void> {
  upstream = spawn(process.execPath, [SCRIPT, String(port), effects], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(upstream.stdout as NodeJS.ReadableStream, 'data')
}

async function killUpstream(): Promise<void> {
  const gone = once(upstream, 'exit')
  upstream.kill('SIGKILL')
  await gone
}

beforeAll(async () => {
  writeFileSync(effects, '')
  ;[port = 0] = await freePorts(1)
  faulty = await startFaultyGateway()
  const allow = `${faulty.gateway.variables.EGRESS_ALLOW},127.0.0.1:${port}`
  const { url } = faulty.postgres
  await faulty.gateway.restartWorkerd({ DATABASE_FETCH_ENDPOINT: `${url}/sql`, EGRESS_ALLOW: allow })
  await startUpstream()
})
afterAll(async () => {
  upstream?.kill('SIGKILL')
  await faulty?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** A way to the tool. */
interface Way {
  name: string
  integration: IntegrationItem
  inputOf: (text: string) => Record<string, unknown>
}

async function createWays(tenant: Tenant): Promise<Way[]> {
  const url = `http://127.0.0.1:${port}`
  const bodies = [
    { kind: 'mcp', url: `${url}/mcp/modern` },
    { kind: 'mcp', url: `${url}/mcp/legacy` },
    { kind: 'openapi', url, document: DOCUMENT },
  ]
  const integrations = await Promise.all(
    bodies.map((body) => createIntegration(faulty.gateway, tenant, { ...body, price: PRICE })),
  )
  return integrations.map((integration, index) => ({
    name: `${integration.slug}_pay`,
    integration,
    inputOf: (text) => (bodies[index]?.kind === 'openapi' ? { body: { text } } : { text }),
  }))
}

interface Call {
  text: string
  answer: Answer
}

/** Answer of a call that did not complete. */
const FAILURE = { code: 'upstream_failed', message: expect.any(String), retryable: false }

const isCompleted = ({ answer }: Call) =>
  (jsonOf(answer) as { result: { isError?: boolean } }).result.isError === undefined

describe('the process of an upstream is killed in the middle of calls with effects', () => {
  it('no call is sent twice, each has one record and a clear answer, and the list stays', {
    timeout: 300_000,
  }, async () => {
    const { gateway } = faulty
    const random = new Random(1)
    const tenant = await createMcpTenant(gateway)
    const ways = await createWays(tenant)
    const names = ways.map(({ name }) => name).sort()
    const before = await settledCredits(gateway, tenant)
    const calls: Call[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      const made = ways.flatMap(({ name, inputOf }, way) =>
        Array.from({ length: CALLS }, async (_, index): Promise<Call> => {
          const text = `effect ${kill}.${way}.${index}.`
          const params = { name, arguments: inputOf(text) }
          return { text, answer: await sendMcp(gateway, tenant.key, 'tools/call', params) }
        }),
      )
      // A busy machine may answer none in the time: every third kill comes after an answer.
      const moment = random.integer(0, 400)
      await (kill % 3 === 0 ? Promise.race(made) : new Promise((done) => setTimeout(done, moment)))
      await killUpstream()
      calls.push(...(await Promise.all(made)))
      await Promise.all(
        ways.slice(0, 2).map(async ({ integration }) => {
          const outcome = await refreshIntegration(gateway, tenant, integration)
          expect(outcome).toMatchObject([{ kind: 'failed' }])
        }),
      )
      const listed = (await listMcpTools(gateway, tenant.key)).map(({ name }) => name)
      expect(listed.filter((name) => names.includes(name))).toEqual(names)
      // Calls to a killed process execute nothing and end at once.
      for (const { name } of ways) {
        const params = { name, arguments: {} }
        const { result } = jsonOf(await sendMcp(gateway, tenant.key, 'tools/call', params)) as {
          result: { content: Array<{ text: string }>; isError?: boolean }
        }
        expect([result.isError, JSON.parse(result.content[0]?.text ?? '')]).toEqual([true, FAILURE])
      }
      await startUpstream()
    }

    const executed = readFileSync(effects, 'utf8').trimEnd().split('\n')
    expect(new Set(executed).size).toBe(executed.length)
    const completed = calls.filter(isCompleted)
    for (const { text } of completed) expect(executed).toContain(text)
    const cut = calls.filter((call) => !isCompleted(call))
    for (const { answer } of cut) {
      const { result } = jsonOf(answer) as { result: { content: Array<{ text: string }> } }
      expect(JSON.parse(result.content[0]?.text ?? '')).toEqual(FAILURE)
    }
    // The seed makes all kinds: calls that were answered, calls that were cut after their effect, and before it.
    expect(completed.length).toBeGreaterThan(0)
    expect(cut.filter(({ text }) => executed.includes(text)).length).toBeGreaterThan(0)

    // A breaker opens for refreshes, not for calls; its next success closes it.
    for (const { integration } of ways.slice(0, 2)) {
      expect(await refreshIntegration(gateway, tenant, integration)).toMatchObject([{ kind: 'refreshed' }])
    }
    const all = calls.length + KILLS * ways.length
    await vi.waitFor(async () => {
      await flush(gateway, tenant)
      expect(await toolRecords(tenant, names)).toHaveLength(all)
    }, 10_000)
    const ids = (await toolRecords(tenant, names)).map(({ request_id: id }) => id)
    expect(new Set(ids).size).toBe(all)
    for (const { answer } of calls) expect(ids).toContain(answer.headers['x-request-id'])
    const { balance, reserved } = await settledCredits(gateway, tenant)
    expect([reserved, balance]).toEqual([0, before.balance - completed.length * PRICE])
  })
})

const toolRecords = ({ organizationId }: Tenant, names: readonly string[]) =>
  query(
    faulty.gateway,
    `select request_id, status, credits_settled from audit_records
      where organization_id = $1 and kind = 'call' and body::jsonb ->> 'tool' = any($2)`,
    [organizationId, names],
  )
