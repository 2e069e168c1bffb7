import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, settledCredits } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { registerScript, type ScriptStep, seenRequests } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const generating = MODEL_ROUTES.filter(({ generates }) => generates)

function call(route: ModelRoute, text: string, more: Record<string, unknown> = {}) {
  const body = JSON.stringify(route.request(text, more))
  return send(gateway().baseUrl + route.path, { method: 'POST', headers: bearer(tenant.key), body })
}

const answerScript = (status: number, type: string | null, body: Buffer): Promise<string> =>
  registerScript(gateway(), [
    { status, headers: type === null ? {} : { 'content-type': type } },
    { chunkBase64: body.toString('base64') },
    { end: true },
  ])

/** Errors as vendors, proxies and scripts send them: the gateway does not read their bodies. */
const errors: Array<[status: number, type: string | null, body: Buffer]> = [
  [400, 'application/json', Buffer.from('{"error":{"message":"No.","type":"x","param":null,"code":1.0}}')],
  [401, 'application/json; charset=utf-8', Buffer.from('{ "error" : "Unauthorized" }')],
  [402, 'application/problem+json', Buffer.from('{"type":"about:blank"}\n')],
  [403, 'text/html; charset=ISO-8859-1', Buffer.from('<h1>verboten: \xe4</h1>', 'latin1')],
  [404, 'text/plain', Buffer.from('nothing here')],
  [405, 'application/json', Buffer.from('')],
  [408, 'application/json', Buffer.from('{"message":"slow"}')],
  [409, 'application/json', Buffer.from('{"a":1,"a":2}')],
  [413, 'application/json', Buffer.from('{"error":{"type":"request_too_large"}}')],
  [418, 'text/plain; charset=utf-8', Buffer.from('🫖')],
  [422, 'application/json', Buffer.from('{"detail":[{"loc":["body"]}]}')],
  [429, 'application/json', Buffer.from('{"error":{"message":"later","type":"requests"}}')],
  [451, null, Buffer.from('no content type')],
  [500, 'application/json', Buffer.from('{"broken json"')],
  [502, 'text/html', Buffer.from('<!doctype html><title>502</title>\r\n')],
  [503, 'application/octet-stream', randomBytes(1_000)],
  [504, 'text/event-stream', Buffer.from('data: {"error":1}\n\n')],
  [529, 'application/json', Buffer.from('{"type":"error","error":{"type":"overloaded_error"}}')],
  [599, 'application/json', randomBytes(200_000)],
]

const forwarding = generating.filter(({ surface }) => surface === 'chat_completions')

describe.each(forwarding.map((route) => [route.name, route] as const))('%s', (_, route) => {
  // The envelope of messages: provider-faults.test.ts, translated-errors.test.ts.
  const some = route.name === 'completions' ? errors.slice(0, 4) : errors
  it.concurrent.each(some)('forwards %i %s unchanged', async (status, type, body) => {
    const script = await answerScript(status, type, body)
    for (const stream of [false, true]) {
      const answer = await call(route, script, { stream })
      expect(answer.status).toBe(status)
      expect(answer.bytes.equals(body), answer.text.slice(0, 300)).toBe(true)
      expect(answer.headers['content-type'] ?? null).toBe(type)
      expect(answer.headers['x-request-id']).toMatch(/^req_/)
    }
    // Official SDKs repeat by themselves; a gateway that did as well would multiply the load.
    expect(await seenRequests(gateway(), script)).toHaveLength(2)
  })
})

describe.each(generating.map((route) => [route.name, route] as const))('%s', (_, route) => {
  it('forwards what an upstream says of waiting, not its limits, and its request id under another name', async () => {
    const headers = {
      'content-type': 'application/json',
      'retry-after': '7',
      'retry-after-ms': '7000',
      'x-should-retry': 'true',
      'x-ratelimit-remaining-requests': '0',
      'anthropic-ratelimit-tokens-remaining': '0',
      'request-id': 'req_upstream',
      'x-request-id': 'req_upstream',
      'set-cookie': ['a=1', 'b=2'],
      server: 'upstream',
      'strict-transport-security': 'max-age=1',
      'access-control-allow-origin': '*',
      'cf-ray': 'x',
      'openai-organization': 'org-ours',
      'anthropic-organization-id': 'ours',
      'www-authenticate': 'Bearer realm="upstream"',
    }
    const answer = await call(route, await registerScript(gateway(), [{ status: 429, headers, body: '{}' }]))
    expect(answer.status).toBe(429)
    const { date: _date, connection: _connection, 'x-request-id': own, ...rest } = answer.headers
    expect(own).toMatch(/^req_/)
    expect(own).not.toBe('req_upstream')
    expect(rest).toEqual({
      'content-type': 'application/json',
      'content-length': expect.any(String),
      'x-headgate-error-source': 'provider',
      'retry-after': '7',
      'retry-after-ms': '7000',
      'x-should-retry': 'true',
      'x-upstream-request-id': 'req_upstream',
      vary: 'Origin',
      // The gateway's own limits: answer-headers.test.
      ...Object.fromEntries(
        ['limit', 'remaining', 'reset'].map((figure) => [
          route.surface === 'messages'
            ? `anthropic-ratelimit-requests-${figure}`
            : `x-ratelimit-${figure}-requests`,
          expect.not.stringMatching(/^0$/),
        ]),
      ),
      ...(route.surface === 'messages' && { 'request-id': own }),
    })
  })

  const noAnswers: Array<[name: string, steps: ScriptStep[] | string, says: RegExp]> = [
    ['an empty body', 'script:empty-body', /empty/],
    ['an empty body of a 204', [{ status: 204 }, { end: true }], /empty/],
    ['a body that is not JSON', 'script:not-json', /not JSON/],
    ['a body that breaks off', 'script:mid-stream-cut', /broke off/],
    ['JSON that ends early', 'script:mid-stream-end', /not JSON/],
    ['a connection that is reset', [{ destroy: true }], /could not be reached/],
    ['a redirect', 'script:redirect', /could not be reached/],
  ]
  // A completion is read as a chat is.
  const isCompletion = route.name === 'completions'
  it.concurrent.each(isCompletion ? noAnswers.slice(2, 3) : noAnswers)(
    'tells %s as 502',
    async (_name, script, says) => {
      const text = typeof script === 'string' ? script : await registerScript(gateway(), script)
      const answer = await call(route, text)
      expect(jsonOf(answer)).toEqual(
        refusalBody(route.surface, { status: 502, code: 'upstream_empty_body', message: says }),
      )
      expect(answer.status).toBe(502)
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
    },
  )

  const badStreams: Array<[name: string, steps: ScriptStep[] | string, says: RegExp]> = [
    ['an empty stream', 'script:empty-stream', /empty/],
    ['a first event that is not JSON', [{ sse: ['data: {"broken\n\n'] }, { end: true }], /not JSON/],
    [
      'a stream that is reset before its first event',
      [{ status: 200 }, { destroy: true }],
      /broke off|reached/,
    ],
    ['comments and nothing else', [{ sse: [': hi\n\n', ': hi\n\n'] }, { end: true }], /empty/],
    ['an empty body', 'script:empty-body', /empty/],
  ]
  it.concurrent.each(isCompletion ? badStreams.slice(1, 2) : badStreams)(
    'tells %s of a stream as 502',
    async (_name, script, says) => {
      const text = typeof script === 'string' ? script : await registerScript(gateway(), script)
      const answer = await call(route, text, { stream: true })
      expect(jsonOf(answer)).toEqual(
        refusalBody(route.surface, { status: 502, code: 'upstream_empty_body', message: says }),
      )
      expect(answer.status).toBe(502)
    },
  )

  it('charges nothing for an error of the upstream, and records it', async () => {
    const poor = await createTenant(gateway())
    const body = JSON.stringify(route.request('script:error-400'))
    const url = gateway().baseUrl + route.path
    const answer = await send(url, { method: 'POST', headers: bearer(poor.key), body })
    expect(answer.status).toBe(400)
    const entry = await auditEntryOf(gateway(), poor, answer.headers['x-request-id'])
    expect(entry).toMatchObject({ status: 400, credits_settled: 0, model: route.model })
    expect(entry.record).toMatchObject({ errorCode: 'upstream_error', usage: null, cost: 0 })
    expect((await settledCredits(gateway(), poor)).balance).toBe(1_000_000_000)
  })
})

describe('count tokens', () => {
  const route = MODEL_ROUTES[3] as ModelRoute

  it('forwards errors of the upstream in the envelope of messages', async () => {
    for (const [script, status] of [
      ['error-400', 400],
      ['error-529', 529],
      ['error-html-502', 502],
    ] as const) {
      const answer = await call(route, `script:${script}`)
      expect(answer.status).toBe(status)
      expect(jsonOf(answer)).toMatchObject({ type: 'error', error: { type: expect.any(String) } })
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
      if (script !== 'error-html-502')
        expect(jsonOf(answer)).toMatchObject({ request_id: expect.any(String) })
    }
  })
})
