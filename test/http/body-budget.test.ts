import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

/** Bytes that the gateway may hold: a body of nearly all of them fails if any earlier bytes were not released. */
const ROOM = 2_000_000
const NEARLY_ALL = ROOM - 20_000
const HALF = 1_250_000
const WITHIN = { timeout: 10_000, interval: 50 }

let gateway: StartedWorker
let edge: Edge
let tenant: Tenant

beforeAll(async () => {
  const variables = { BUFFER_LIMIT_BYTES: String(ROOM), LEDGER_FLUSH_MS: '100' }
  gateway = await startWorker(variables)
  edge = await startEdge(gateway.baseUrl)
  tenant = await createTenant(gateway)
})
afterAll(async () => {
  await edge?.close()
  await gateway?.stop()
})

const chat = MODEL_ROUTES[0] as ModelRoute

/** A valid request of exactly this many bytes. @param text stands at its beginning. */
function requestOf(bytes: number, text: string, route = chat, more: Record<string, unknown> = {}): Buffer {
  const [before = '', after = ''] = JSON.stringify(route.request(`${text}|`, more)).split('|')
  const body = Buffer.alloc(bytes, 'x')
  body.write(before)
  body.write(after, bytes - Buffer.byteLength(after))
  return body
}

const urlOf = (route: ModelRoute) =>
  (route.hosts.includes('base') ? gateway.baseUrl : gateway.llmUrl) + route.path

const post = (body: Buffer, options: { route?: ModelRoute; chunked?: boolean; encoding?: string } = {}) =>
  send(urlOf(options.route ?? chat), {
    method: 'POST',
    body,
    chunked: options.chunked ?? false,
    headers: { ...bearer(tenant.key), ...(options.encoding && { 'content-encoding': options.encoding }) },
  })

/** Passes once the gateway holds nothing any more. */
const expectAllGivenBack = () =>
  vi.waitFor(async () => {
    const answer = await post(requestOf(NEARLY_ALL, marker()))
    expect(answer.status, answer.text.slice(0, 200)).toBe(200)
  }, WITHIN)

/** Sends a head and the beginning of a body. @returns its connection */
async function begin(
  body: Buffer,
  sent: number,
  { chunked = false, url = gateway.baseUrl, key = tenant.key } = {},
): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  const length = chunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`
  socket.write(
    `POST ${chat.path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\n${length}\r\n\r\n`,
  )
  if (chunked) socket.write(`${sent.toString(16)}\r\n`)
  await new Promise<void>((done) => socket.write(body.subarray(0, sent), () => done()))
  return socket
}

/**
 * Holds part of the room by a body that does not end. A body that arrives without room is refused, which may be this
 * one, so it is sent again until the other body is refused.
 */
const occupied = (chunked: boolean): Promise<Socket> =>
  vi.waitFor(async () => {
    const socket = await begin(requestOf(HALF + 10, marker()), HALF, { chunked })
    const { status } = await post(requestOf(HALF, marker()))
    if (status !== 429) socket.destroy()
    expect(status).toBe(429)
    return socket
  }, WITHIN)

describe('beyond the buffer cap', () => {
  const forms: Array<[string, (body: Buffer, route: ModelRoute) => Promise<Answer>]> = [
    ['with a declared length', (body, route) => post(body, { route })],
    ['chunked', (body, route) => post(body, { route, chunked: true })],
    ['compressed', (body, route) => post(gzipSync(body), { route, encoding: 'gzip' })],
  ]
  it.each(
    // Bodies are counted by the same code for every route, and envelopes are the same for every form.
    MODEL_ROUTES.flatMap((route) =>
      forms
        .filter((_, index) => route === chat || index === 0)
        .map(([form, call]) => [route.name, form, route, call] as const),
    ),
  )('a body of %s %s is refused in the envelope of its surface', async (_, _form, route, call) => {
    const answer = await call(requestOf(ROOM + 100_000, marker(), route), route)
    expect(answer.status).toBe(429)
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(answer.headers['x-request-id']).toBeDefined()
    const message = "The gateway's memory for large requests is in use. Try again in a moment."
    expect(jsonOf(answer)).toEqual(refusalBody(route.surface, { status: 429, message }))
    await expectAllGivenBack()
  })

  it('small bodies pass while a large one is refused', async () => {
    const socket = await occupied(false)
    expect((await post(requestOf(HALF, marker(), chat), { chunked: true })).status).toBe(429)
    expect((await post(requestOf(10_000, marker()))).status).toBe(200)
    socket.resetAndDestroy()
    await expectAllGivenBack()
  })

  /**
   * Senders of one organization that hold all bytes that it may. When the other call arrives before their last bytes, one
   * of them is refused in its place: then all start again from an empty gateway, and the call comes later.
   *
   * @param other a call without room beside all of them
   */
  async function slowSenders(other: () => Promise<Answer>): Promise<Socket[]> {
    for (const pause of [0, 100, 500, 2_000]) {
      const begun = await Promise.all(
        Array.from({ length: 3 }, () => begin(requestOf(HALF + 10, marker()), 580_000)),
      )
      await setTimeout(pause)
      if ((await other()).status === 429) return begun
      for (const socket of begun) socket.destroy()
      await expectAllGivenBack()
    }
    throw new Error('the senders never held all room')
  }

  it('slow senders of one organization give room back to another', { timeout: 60_000 }, async () => {
    const other = await createTenant(gateway)
    const body = requestOf(400_000, marker())
    const call = () => send(urlOf(chat), { method: 'POST', body, headers: bearer(other.key) })
    const sockets = await slowSenders(call)
    // Bodies that have been arriving for five seconds can lose their places.
    await vi.waitFor(async () => expect((await call()).status).toBe(200), {
      timeout: 20_000,
      interval: 500,
    })
    // The sender that lost its place gets its answer when it sends on.
    const answers = sockets.map(async (socket) => {
      const [bytes] = await once(socket, 'data')
      expect(String(bytes)).toMatch(/^HTTP\/1.1 429 /)
    })
    for (const socket of sockets) socket.write('x'.repeat(10))
    await Promise.any(answers)
    for (const socket of sockets) socket.resetAndDestroy()
    await expectAllGivenBack()
  })

  it('others are served while one organization holds all that it may', { timeout: 60_000 }, async () => {
    const other = await createTenant(gateway)
    const sockets = await slowSenders(() => post(requestOf(150_000, marker())))
    const body = requestOf(150_000, marker())
    const answer = await send(urlOf(chat), { method: 'POST', body, headers: bearer(other.key) })
    expect(answer.status).toBe(200)
    for (const socket of sockets) socket.resetAndDestroy()
    await expectAllGivenBack()
  })

  it('is counted by what arrived: nobody takes room by a declaration', async () => {
    const { key } = await createTenant(gateway)
    const sockets = await Promise.all(
      Array.from({ length: 5 }, () => begin(requestOf(NEARLY_ALL, marker()), 1_000, { key })),
    )
    await expectAllGivenBack()
    for (const socket of sockets) socket.resetAndDestroy()
  })
})

describe('a body is given back', () => {
  let broken = ''
  beforeAll(async () => {
    broken = await registerScript(gateway, [{ destroy: true }])
  })

  const refused: Array<[string, () => Buffer, number]> = [
    ['that is not JSON', () => Buffer.alloc(HALF, '['), 400],
    ['that is not UTF-8', () => requestOf(HALF, marker()).fill(0xff, HALF - 99, HALF - 9), 400],
    ['without messages', () => Buffer.from(JSON.stringify({ model: chat.model, x: 'x'.repeat(HALF) })), 400],
    ['for an unknown model', () => requestOf(HALF, marker(), chat, { model: 'nothing' }), 400],
    ['that the upstream refuses', () => requestOf(HALF, `${marker()} script:error-400 `), 400],
    ['that the upstream does not answer', () => requestOf(HALF, `${marker()} ${broken} `), 502],
    ['of a stream', () => requestOf(HALF, marker(), chat, { stream: true }), 200],
  ]
  it.each(refused)('%s', async (_, body, status) => {
    for (const chunked of [false, true]) {
      const answer = await post(body(), { chunked })
      expect(answer.status, answer.text.slice(0, 200)).toBe(status)
      await expectAllGivenBack()
    }
  })

  it('whose call has no credits', async () => {
    const rich = tenant
    tenant = await createTenant(gateway, { credits: 0 })
    expect((await post(requestOf(HALF, marker()))).status).toBe(429)
    tenant = rich
    await expectAllGivenBack()
  })

  it('while its answer is still streaming', async () => {
    const text = marker()
    const body = requestOf(HALF, `${text} script:stall `, chat, { stream: true })
    const socket = await begin(body, body.length)
    await seenRequest(gateway, text)
    await expectAllGivenBack()
    socket.resetAndDestroy()
  })

  it.each([
    ['declared', false],
    ['chunked', true],
  ])('whose caller leaves in the middle of it (%s)', async (_, chunked) => {
    const socket = await occupied(chunked)
    socket.resetAndDestroy()
    await expectAllGivenBack()
  })

  // workerd by itself notices only on writing that a caller left; the forwarder before it reports that at once.
  describe.each([
    ['alone', () => gateway.baseUrl],
    ['behind an edge', () => edge.url],
  ])('by a gateway %s', (_, url) => {
    it('whose caller leaves while the upstream is silent', async () => {
      const text = marker()
      const body = requestOf(HALF, `${text} script:slow-headers signal=never `)
      const socket = await begin(body, body.length, { url: url() })
      await seenRequest(gateway, text)
      expect((await post(requestOf(HALF, marker()))).status).toBe(429)
      socket.resetAndDestroy()
      await expectAllGivenBack()
    })

    it('whose caller leaves at any moment', async () => {
      for (let count = 0; count < 40; count++) {
        const body = requestOf(200_000, marker())
        const socket = await begin(body, count % 2 === 0 ? body.length : 100_000, { url: url() })
        for (let turn = 0; turn < count * 3; turn++) await setImmediate()
        socket.resetAndDestroy()
      }
      await expectAllGivenBack()
    })
  })
})
