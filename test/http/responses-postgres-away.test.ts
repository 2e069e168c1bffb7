import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { freePorts } from '../../scripts/node/ports.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, settledCredits } from '../harness/records.ts'
import { jsonOf } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { postResponse, respond } from './support/response-streams.ts'

/** Between the Worker and Postgres. */
let proxy: Server
let mode: 'open' | 'hangs' | 'refuses' = 'open'
let address: StartedWorker
let tenant: Tenant

beforeAll(async () => {
  const endpoint = gateway().variables.DATABASE_FETCH_ENDPOINT ?? ''
  proxy = createServer(async (request, response) => {
    if (mode === 'hangs') return
    if (mode === 'refuses') return void request.socket.destroy()
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { host: _, connection: __, 'content-length': ___, ...headers } = request.headers
    const answer = await fetch(endpoint, {
      method: 'POST',
      headers: headers as Record<string, string>,
      body: Buffer.concat(chunks),
    })
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(await answer.text())
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo
  address = await startWorker({ DATABASE_FETCH_ENDPOINT: `http://127.0.0.1:${port}/sql` })
  tenant = await createTenant(address)
}, 60_000)
afterAll(async () => {
  await address?.stop()
  proxy?.closeAllConnections()
  proxy?.close()
})
beforeEach(() => {
  mode = 'open'
})

/** Calls with a key that no isolate knows. */
async function expectUnknownKeyFailsSoon(worker: { baseUrl: string }, key: string): Promise<void> {
  const startedAt = Date.now()
  const answer = await postResponse(key, { input: 'Hello' }, worker)
  expect(Date.now() - startedAt).toBeLessThan(5_000)
  expect(answer.status).toBe(500)
  expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  expect(jsonOf(answer)).toEqual({
    error: {
      message: 'API keys cannot be checked at the moment. Try again soon.',
      type: 'server_error',
      code: 'internal_error',
    },
  })
}

it.each(['hangs', 'refuses'] as const)(
  'a key that has to be looked up fails soon while Postgres %s',
  async (away) => {
    const { key } = await createTenant(address)
    mode = away
    await expectUnknownKeyFailsSoon(address, key)
    mode = 'open'
    proxy.closeAllConnections()
    expect((await respond(key, { input: 'Hello' }, address)).response.status).toBe('completed')
  },
)

it('a key that has to be looked up fails soon where there is no Postgres', async () => {
  const [port] = await freePorts(1)
  const worker = await startWorker({ DATABASE_FETCH_ENDPOINT: `http://127.0.0.1:${port}/sql` })
  await expectUnknownKeyFailsSoon(worker, tenant.key).finally(() => worker.stop())
})

it.each(['hangs', 'refuses'] as const)(
  'a response fails soon while Postgres %s, and asks to try again',
  async (away) => {
    // The isolate knows the caller from now on.
    const { response: first } = await respond(tenant.key, { input: 'Hello' }, address)
    const before = await settledCredits(address, tenant)
    mode = away
    const requests = [{}, { stream: true }, { conversation: first.conversation?.id }].map(async (more) => {
      const startedAt = Date.now()
      const answer = await postResponse(tenant.key, { input: 'Hello', ...more }, address)
      expect(Date.now() - startedAt).toBeLessThan(5_000)
      expect(answer.status).toBe(500)
      expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      expect(jsonOf(answer)).toMatchObject({ error: { type: 'server_error', code: 'internal_error' } })
      return answer
    })
    const answers = await Promise.all(requests)
    mode = 'open'
    proxy.closeAllConnections()
    for (const { headers } of answers.slice(0, 2)) {
      const entry = await auditEntryOf(address, tenant, headers['x-request-id'])
      expect(entry).toMatchObject({ status: 500, credits_settled: 0 })
    }
    expect((await settledCredits(address, tenant)).balance).toBe(before.balance)
    const conversation = first.conversation?.id
    const { response: next } = await respond(tenant.key, { input: 'Again.', conversation }, address)
    expect(next.status).toBe('completed')
  },
)
