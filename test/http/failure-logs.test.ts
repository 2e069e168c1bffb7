import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { createToken } from '../../src/identity/secret-token.ts'
import { send } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { RESPONSES_ROUTE, routeExamples } from '../matrices/routes.ts'

type Line = Record<string, unknown>

let address: StartedGateway
beforeAll(async () => {
  address = await startGateway({ bundleDirectory: inject('bundleDirectory'), isBrief: true })
  // Its key and rights are known, so that a response gets as far as its object.
  const models = await send(`${address.baseUrl}/v1/models`, { headers: bearer(address.keys.owner) })
  expect(models.status).toBe(200)
  await address.killStandIn('postgres')
})
afterAll(() => address?.stop())

const bearer = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })

const lines = (): Line[] =>
  readFileSync(join(address.logFolder, 'workerd.log'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{"level"'))
    .map((line) => JSON.parse(line) as Line)

const linesOf = (event: string, requestId: unknown) =>
  lines().filter((line) => line.event === event && line.request_id === requestId)

/** Members that a line must have to explain the failure. */
const EXPLAINED = {
  level: 'error',
  name: expect.stringMatching(/./),
  error: expect.stringMatching(/./),
  stack: expect.stringMatching(/^\s+at /),
}

describe.each(['hg', 'hgs', 'hgl'] as const)('a token %s_', (prefix) => {
  it('is in no log, wherever it was sent', async () => {
    const { token } = createToken(prefix)
    const own = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
    const base = address.baseUrl
    const body = (members: object) => ({ method: 'POST', headers: own, body: JSON.stringify(members) })
    const answers = await Promise.all([
      send(`${base}/api/me`, { headers: { cookie: `__Host-hg_session=${token}` } }),
      send(`${base}/api/organizations/${token}/users?email=${token}`, {
        headers: bearer(address.adminToken),
      }),
      send(`${base}/api/setup`, body({ token })),
      send(`${base}/api/setup/passkey/begin`, body({ token })),
      send(`${base}/v1/models/${token}`, { headers: bearer(token) }),
      send(`${base}/${token}`, { headers: { 'x-api-key': token } }),
    ])
    // What needs Postgres fails, and is logged.
    const failed = answers.filter(({ status }) => status >= 500)
    expect(failed.length).toBeGreaterThan(0)
    for (const { headers } of failed)
      await vi.waitFor(() => expect(linesOf('request_failed', headers['x-request-id'])).toHaveLength(1))
    const secret = token.slice(prefix.length + 14)
    for (const { text } of answers) expect(text).not.toContain(secret)
    for (const name of readdirSync(address.logFolder))
      expect(readFileSync(join(address.logFolder, name), 'utf8'), name).not.toContain(secret)
  })
})

describe('an internal error is one line of the log', () => {
  it('for every route with a key, by request id, surface and pattern', async () => {
    const routes = routeExamples().filter(({ surface }) => surface !== 'open' && surface !== 'signed')
    const surfaces = new Set<string>()
    for (const { method, path, pattern, surface, body, headers } of routes) {
      const key = surface === 'management' ? address.adminToken : address.keys.member
      const answer = await send(`${address.baseUrl}${path}`, {
        method,
        headers: { ...bearer(key), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const requestId = answer.headers['x-request-id']
      if (answer.status < 500) {
        expect(linesOf('request_failed', requestId)).toEqual([])
        continue
      }
      surfaces.add(surface)
      const route = `${method} ${pattern}`
      await vi.waitFor(() => {
        expect(linesOf('request_failed', requestId)).toEqual([
          expect.objectContaining({ ...EXPLAINED, surface, route }),
        ])
      })
    }
    const all = ['agents', 'chat_completions', 'connections', 'management', 'mcp']
    expect([...surfaces].sort()).toEqual([...all, 'messages', 'models', 'responses'])
  }, 120_000)

  it('for a response, in the gateway and in its object', async () => {
    const answer = await send(`${address.baseUrl}${RESPONSES_ROUTE.path}`, {
      method: 'POST',
      headers: bearer(address.keys.owner),
      body: JSON.stringify(RESPONSES_ROUTE.request('Hello')),
    })
    expect(answer.status).toBe(500)
    const requestId = answer.headers['x-request-id']
    await vi.waitFor(() => {
      for (const event of ['request_failed', 'response_not_started']) {
        expect(linesOf(event, requestId)).toEqual([
          expect.objectContaining({ ...EXPLAINED, surface: 'responses' }),
        ])
      }
    })
  })

  it('for a method of an object and for a job of the schedule', async () => {
    await address.workerd.runScheduled('*/5 * * * *').catch(() => {})
    await vi.waitFor(() => {
      const failed = lines().filter(({ event }) => event === 'job_failed')
      expect(failed).toContainEqual(
        expect.objectContaining({ ...EXPLAINED, surface: 'scheduled', route: 'republishOverdue' }),
      )
      const objects = lines().filter(({ event }) => event === 'object_failed')
      expect(objects).toContainEqual(expect.objectContaining({ ...EXPLAINED, surface: 'Ledger' }))
    })
  })

  it('without a key or a credential', () => {
    const text = JSON.stringify(lines())
    for (const key of [...Object.values(address.keys), address.adminToken]) expect(text).not.toContain(key)
  })
})
