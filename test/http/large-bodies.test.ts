import { createHash } from 'node:crypto'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { type Answer, jsonOf, type SendOptions, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { type Host, MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

/** Interface, Limits. */
const LIMIT = 52_428_800

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

/** A valid request of exactly this many bytes. @param text stands at its beginning. */
function requestOf(route: ModelRoute, bytes: number, text: string): Buffer {
  const [before = '', after = ''] = JSON.stringify(route.request(`${text}|`)).split('|')
  const body = Buffer.alloc(bytes, 'x')
  body.write(before)
  body.write(after, bytes - Buffer.byteLength(after))
  return body
}

function post(url: string, options: SendOptions): Promise<Answer> {
  return send(url, { method: 'POST', ...options, headers: { ...bearer(tenant.key), ...options.headers } })
}

const tooLarge = { message: 'The request body is larger than 52428800 bytes.' }
const lengths = [
  ['declared', false],
  ['chunked', true],
] as const
// One reader of bodies serves every route, so each surface has one, and each host. One route has the bodies that are counted
// or pass: they take longest.
const [chat, completions, messages] = MODEL_ROUTES as [ModelRoute, ModelRoute, ModelRoute]
const routes: Array<{ name: string; host: Host; route: ModelRoute }> = [
  { name: completions.name, host: 'llm', route: completions },
  { name: messages.name, host: 'base', route: messages },
]

describe.each(lengths)('a body with its length %s', (_, chunked) => {
  it('of 52,428,800 bytes passes unchanged', async () => {
    const text = marker()
    const body = requestOf(chat, LIMIT, text)
    const answer = await post(gateway().baseUrl + chat.path, { body, chunked })
    expect(answer.status, answer.text.slice(0, 300)).toBe(200)
    const seen = await seenRequest(gateway(), text)
    expect(seen.bodyBytes).toBe(LIMIT)
    expect(seen.bodySha256).toBe(createHash('sha256').update(body).digest('hex'))
  })

  it.each(chunked ? [] : routes)(
    'of one byte more is refused on $name ($host host), and the answer can be read',
    async ({ route, host }) => {
      const url = (host === 'llm' ? gateway().llmUrl : gateway().baseUrl) + route.path
      const text = marker()
      const answer = await post(url, { body: requestOf(route, LIMIT + 1, text), chunked })
      expect(jsonOf(answer)).toEqual(tooLarge)
      expect(answer.status).toBe(413)
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
      expect(answer.headers['x-request-id']).toBeDefined()
      expect(await seenRequests(gateway(), text)).toEqual([])
    },
  )

  it.runIf(chunked)('is refused on the management API, too', async () => {
    const body = Buffer.alloc(LIMIT + 1, ' ')
    const headers = { authorization: `Bearer ${gateway().adminToken}` }
    const answer = await post(`${gateway().baseUrl}/api/organizations`, { headers, body, chunked })
    expect(jsonOf(answer)).toEqual(tooLarge)
    expect(answer.status).toBe(413)
  })

  it('over the limit has an audit record in the organization of its key, and counts against its limits', async () => {
    const owner = await createTenant(gateway(), { user: { rate_limit_per_minute: 1 } })
    const options = { method: 'POST', headers: bearer(owner.key), chunked }
    const url = gateway().baseUrl + chat.path
    const text = marker()
    const answer = await send(url, { ...options, body: requestOf(chat, LIMIT + 1, text) })
    expect(jsonOf(answer)).toEqual(tooLarge)
    expect(answer.status).toBe(413)
    expect(await seenRequests(gateway(), text)).toEqual([])
    const { record } = await auditEntryOf(gateway(), owner, answer.headers['x-request-id'])
    expect(record).toMatchObject({ status: 413, errorCode: 'too_large', action: `POST ${chat.path}` })
    const call = () => send(url, { ...options, body: JSON.stringify(chat.request('Hello')) })
    // A minute can end between the two calls.
    expect([(await call()).status, (await call()).status]).toContain(429)
  })

  it('without a valid key is answered so that the answer can be read', async () => {
    const headers = { authorization: 'Bearer unknown' }
    const body = requestOf(chat, LIMIT + 1, marker())
    const answer = await post(gateway().baseUrl + chat.path, { headers, body, chunked })
    // A declared length is looked at before the key, one that has to be counted after it.
    expect(answer.status).toBe(chunked ? 401 : 413)
  })
})

describe.each([chat, messages].map((route) => [route.name, route] as const))('%s', (_, route) => {
  const url = () => gateway().baseUrl + route.path
  const encoded = (encoding: string, body: Buffer) =>
    post(url(), { headers: { 'content-encoding': encoding }, body })

  it('takes a gzip body and sends it on as it was before', async () => {
    const text = marker()
    const body = Buffer.from(JSON.stringify(route.request(`${text} é 🦉`)))
    for (const encoding of ['gzip', 'GZIP']) {
      expect((await encoded(encoding, gzipSync(body))).status).toBe(200)
    }
    const seen = await seenRequests(gateway(), text)
    expect(seen.map((request) => request.body)).toEqual([body.toString(), body.toString()])
    expect(seen.flatMap(({ headers }) => headers['content-encoding'] ?? [])).toEqual([])
  })

  it.runIf(route === chat)('counts a gzip body after decompression', async () => {
    const answer = await encoded('gzip', gzipSync(requestOf(route, LIMIT + 1, marker()), { level: 1 }))
    expect(jsonOf(answer)).toEqual(tooLarge)
    expect(answer.status).toBe(413)
  })

  it('refuses a body that is not the gzip it says to be', async () => {
    const whole = gzipSync(JSON.stringify(route.request('Hello'.repeat(100))))
    const damaged = Buffer.from(whole)
    damaged.fill(0x55, 20, 40)
    const plain = Buffer.from(JSON.stringify(route.request('Hello')))
    for (const body of [plain, whole.subarray(0, -9), damaged, Buffer.from('x')]) {
      const answer = await encoded('gzip', body)
      expect(jsonOf(answer)).toEqual(
        refusalBody(route.surface, {
          status: 400,
          code: 'invalid_body',
          message: 'The body is not valid gzip.',
        }),
      )
      expect(answer.status).toBe(400)
    }
  })

  it('refuses every other encoding', async () => {
    const plain = Buffer.from(JSON.stringify(route.request('Hello')))
    const bodies: Array<[string, Buffer]> = [
      ['br', brotliCompressSync(plain)],
      ['deflate', deflateSync(plain)],
      ['gzip, gzip', gzipSync(gzipSync(plain))],
      ['zstd', plain],
    ]
    for (const [encoding, body] of bodies) {
      const answer = await encoded(encoding, body)
      expect(jsonOf(answer)).toEqual(
        refusalBody(route.surface, {
          status: 400,
          code: 'invalid_body',
          message: `The content encoding ${encoding} is not supported: send gzip or none.`,
        }),
      )
      expect(answer.status).toBe(400)
    }
    expect((await encoded('identity', plain)).status).toBe(200)
  })
})

/** Bodies that cost a reader more than their bytes. The campaign of faults measures many more, of 50 MB. */
describe('a body of 5 MB', () => {
  const bytes = 5_000_000

  /** A request of about so many bytes. @param inside between its beginning and its messages, as often as there is room. */
  function filled(open: string, inside: string, close: string): Buffer {
    const request = JSON.stringify(chat.request('Hello')).slice(1)
    const room = bytes - open.length - close.length - request.length - 2
    const unit = Buffer.byteLength(inside)
    return Buffer.concat([
      Buffer.from(`{${open}`),
      Buffer.alloc(Math.floor(room / unit) * unit, inside),
      Buffer.from(`${close},${request}`),
    ])
  }

  const bodies: Array<[string, Buffer, number]> = [
    ['a million arrays', filled('"more":[', '[],', '[]]'), 200],
    ['a name of as many bytes', filled('"', '漢', '":0'), 200],
    ['nested arrays', filled('"more":', '[', ''), 400],
    ['nested objects', filled('"more":', '{"a":', ''), 400],
  ]
  it.each(bodies)('of %s is answered, and a small call beside it', async (_, body, status) => {
    const answers = await Promise.all([
      post(gateway().baseUrl + chat.path, { body }),
      post(gateway().baseUrl + chat.path, { body: Buffer.from(JSON.stringify(chat.request('Hello'))) }),
    ])
    expect(answers.map((answer) => answer.status)).toEqual([status, 200])
    if (status === 400) expect(answers[0]?.text).toMatch(/nested too deeply \(at most 256 levels\)/)
  })
})
