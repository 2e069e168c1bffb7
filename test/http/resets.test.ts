import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { auditEntries, settledCredits } from '../harness/records.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'

/** Room for one large body and a small one, so that bytes that are not given back are missed at once. */
const ROOM = 3_000_000
const LARGE = 2_000_000

let gateway: StartedWorker
let tenant: Tenant

beforeAll(async () => {
  const variables = { BUFFER_LIMIT_BYTES: String(ROOM), LEDGER_FLUSH_MS: '100', BODY_GRACE_MS: '300' }
  gateway = await startWorker(variables)
  tenant = await createTenant(gateway)
})
afterAll(() => gateway?.stop())

const requestOf = (length: number) => {
  const [before, after] = ['{"model":"scripted-chat","messages":[{"role":"user","content":"', '"}]}']
  return `${before}${'a'.repeat(length - before.length - after.length)}${after}`
}

/** Sends the head and the beginning of a request. @returns its connection */
async function begin(body: string, sent: number): Promise<Socket> {
  const socket = connect(Number(new URL(gateway.baseUrl).port), '127.0.0.1')
  // A refused body's connection is closed on it.
  socket.on('error', () => {})
  await once(socket, 'connect')
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'host: gateway',
    `authorization: Bearer ${tenant.key}`,
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  await new Promise<void>((done) => {
    socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, sent)}`, () => done())
  })
  return socket
}

const call = (body: string) =>
  fetch(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', headers: bearer(tenant.key), body })

/** Sends the beginning of a body. @returns status and body of the answer, which comes before its end. */
async function answerOfSlowBody(path: string, length: string): Promise<[number, unknown]> {
  const socket = connect(Number(new URL(gateway.baseUrl).port), '127.0.0.1')
  const head = `POST ${path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${tenant.key}\r\n${length}\r\n\r\n`
  socket.write(`${head}1\r\n{\r\n`)
  let text = ''
  for await (const bytes of socket) {
    text += bytes
    if (/\r\n\r\n.*\}/s.test(text)) break
  }
  socket.destroy()
  return [Number(text.split(' ')[1]), JSON.parse(/\{.*\}/s.exec(text)?.[0] ?? '')]
}

it.each([
  ['with a declared length', 'content-length: 100000'],
  ['chunked', 'transfer-encoding: chunked'],
])('a body %s that is slower than it may be is 400 in the envelope of its surface', async (_, length) => {
  const message = expect.stringMatching(/^The body arrives too slowly/)
  const nested = { error: { message, type: 'invalid_request_error', code: 'invalid_body' } }
  const expected: Array<[path: string, body: unknown]> = [
    ['/v1/chat/completions', nested],
    ['/v1/responses', nested],
    [
      '/v1/messages',
      { type: 'error', error: { type: 'invalid_request_error', message }, request_id: expect.any(String) },
    ],
  ]
  const answers = await Promise.all(expected.map(([path]) => answerOfSlowBody(path, length)))
  expect(answers).toEqual(expected.map(([, body]) => [400, body]))
})

describe('a caller that resets its connection', () => {
  it('in its body gives back the bytes it held', async () => {
    // A body that arrives without room is refused, which may be the holding one, so it is sent again until the other
    // body is refused.
    const socket = await vi.waitFor(
      async () => {
        const holder = await begin(requestOf(LARGE), LARGE - 10)
        const { status } = await call(requestOf(LARGE))
        if (status !== 429) holder.destroy()
        expect(status).toBe(429)
        return holder
      },
      { timeout: 10_000, interval: 50 },
    )
    socket.resetAndDestroy()
    await vi.waitFor(async () => expect((await call(requestOf(LARGE))).status).toBe(200), {
      timeout: 10_000,
      interval: 50,
    })
  })

  it('after its body leaves no credits reserved and is charged for its input at most', async () => {
    const other = await createTenant(gateway)
    const before = (await settledCredits(gateway, other)).balance
    const key = tenant.key
    tenant = { ...tenant, key: other.key }
    const body = requestOf(300)
    for (let count = 0; count < 30; count++) {
      const socket = await begin(body, body.length)
      // How far the Worker has come by now differs from try to try, as it should.
      for (let turn = 0; turn < count; turn++) await new Promise((next) => setImmediate(next))
      socket.resetAndDestroy()
    }
    tenant = { ...tenant, key }
    const { balance } = await settledCredits(gateway, other)
    // A hundred tokens of input each at most, and a short answer for those that got that far.
    expect(before - balance).toBeLessThan(30 * 1_000)
    const calls = (await auditEntries(gateway, other)).filter(({ kind }) => kind === 'call')
    expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length)
    expect(calls.filter(({ record }) => record.errorCode === 'unsettled')).toEqual([])
  })
})
