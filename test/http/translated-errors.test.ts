import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, settledCredits } from '../harness/records.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest, seenRequests } from '../harness/upstream.ts'
import {
  ALL_PAIRS,
  endOf,
  MESSAGES_ON_CHAT,
  named,
  streamedText,
  type TranslatedPair,
  wholeText,
} from './support/translated-pairs.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

function call(pair: TranslatedPair, text: string, more = {}, key = tenant.key): Promise<Answer> {
  const body = JSON.stringify(pair.request(text, more))
  return send(gateway().baseUrl + pair.route.path, { method: 'POST', headers: bearer(key), body })
}

const bytesScript = (status: number, headers: Record<string, string>, body: Buffer): Promise<string> =>
  registerScript(gateway(), [{ status, headers }, { chunkBase64: body.toString('base64') }, { end: true }])

const json = (value: unknown) => Buffer.from(JSON.stringify(value))

/** Errors as vendors, proxies and people send them, and what a caller of messages reads of each. */
const errors: Array<[status: number, contentType: string | null, body: Buffer, message: string | RegExp]> = [
  [400, 'application/json', json({ error: { message: 'No.', type: 'x', code: 1 } }), 'No.'],
  [401, 'application/json; charset=utf-8', json({ error: 'Unauthorized' }), 'Unauthorized'],
  [402, 'application/problem+json', json({ type: 'about:blank' }), /status 402/],
  [403, 'text/html; charset=ISO-8859-1', Buffer.from('<h1>verboten: \xe4</h1>', 'latin1'), /status 403/],
  [404, 'text/plain', Buffer.from('nothing here'), /status 404/],
  [405, 'application/json', Buffer.from(''), /status 405/],
  [408, 'application/json', json({ message: 'slow' }), 'slow'],
  [424, 'application/json', json([{ error: { message: 'The model failed.' } }]), 'The model failed.'],
  [409, 'application/json', Buffer.from('{"a":1,"a":2}'), /status 409/],
  [413, 'application/json', json({ error: { message: 'Too large.' } }), 'Too large.'],
  [418, 'text/plain; charset=utf-8', Buffer.from('🫖'), /status 418/],
  [422, 'application/json', json({ detail: [{ loc: ['body', 'n'], msg: 'Too large' }] }), 'n: Too large'],
  [422, 'application/json', json({ detail: 'Field required' }), 'Field required'],
  [
    429,
    'application/json',
    json({ error: { message: 'later', type: 'requests' } }),
    /^A limit of the model's provider is reached: later$/,
  ],
  [451, null, Buffer.from('no content type'), /status 451/],
  [500, 'application/json', Buffer.from('{"broken json"'), /status 500/],
  [502, 'text/html', Buffer.from('<!doctype html><title>502</title>\r\n'), /status 502/],
  [503, 'application/octet-stream', randomBytes(1_000), /status 503/],
  [504, 'text/event-stream', Buffer.from('data: {"error":1}\n\n'), /status 504/],
  [529, 'application/json', json({ type: 'error', error: { message: 'Overloaded: é' } }), 'Overloaded: é'],
  [599, 'application/json', randomBytes(200_000), /status 599/],
]

/** Interface, Errors, Messages; the statuses that its table leaves out are the caller's mistakes below 500. */
const TYPES: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'api_error',
  413: 'request_too_large',
  424: 'api_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}
const typeOf = (status: number) => TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')

describe.each(named(ALL_PAIRS))('%s', (_, pair) => {
  const { route, upstream } = pair
  const isMessages = route.surface === 'messages'
  // Callers of messages get an envelope made of each; others get what came, which upstream-errors.test.ts shows of more.
  const told = isMessages ? errors : errors.filter(([status]) => [400, 403, 599].includes(status))

  it.concurrent.each(told)('tells an error %i %s of the upstream', async (status, type, body, message) => {
    const script = await bytesScript(status, type === null ? {} : { 'content-type': type }, body)
    for (const stream of [false, true]) {
      const answer = await call(pair, script, { stream })
      expect(answer.headers['x-request-id']).toMatch(/^req_/)
      if (isMessages && [401, 402, 403].includes(status)) {
        // The provider refuses the gateway, not the caller: provider-faults.test.ts.
        expect(answer.status).toBe(500)
        continue
      }
      expect(answer.status).toBe(status)
      if (isMessages) {
        expect(jsonOf(answer)).toEqual({
          type: 'error',
          error: {
            type: typeOf(status),
            message: typeof message === 'string' ? message : expect.stringMatching(message),
          },
          request_id: answer.headers['request-id'],
        })
        expect(answer.headers['x-headgate-error-source']).toBe('provider')
        expect(answer.headers['content-type']).toBe('application/json')
      } else {
        // Interface, Errors, Chat completions: unchanged in body and content type.
        expect(answer.bytes.equals(body), answer.text.slice(0, 300)).toBe(true)
        expect(answer.headers['content-type'] ?? null).toBe(type)
      }
    }
    expect(await seenRequests(gateway(), script)).toHaveLength(2)
  })

  it('keeps what an upstream says of waiting', async () => {
    const headers = {
      'content-type': 'application/json',
      'retry-after': '7',
      'x-should-retry': 'true',
      'x-ratelimit-remaining-requests': '0',
      'x-request-id': 'req_upstream',
      'set-cookie': 'a=1',
      'openai-organization': 'org-ours',
    }
    const answer = await call(pair, await bytesScript(429, headers, json({ error: { message: 'later' } })))
    expect(answer.status).toBe(429)
    expect(answer.headers).toMatchObject({
      'retry-after': '7',
      'x-should-retry': 'true',
      'x-upstream-request-id': 'req_upstream',
    })
    expect(answer.headers['set-cookie']).toBeUndefined()
    expect(answer.headers['openai-organization']).toBeUndefined()
  })

  it('says when to come back where a 429 of the upstream does not', async () => {
    for (const headers of [{}, { 'retry-after': '0' }, { 'retry-after': 'soon' }]) {
      const answer = await call(pair, await bytesScript(429, headers, json({})))
      expect(answer.headers['retry-after']).toBe('1')
    }
  })

  it('cuts our credential out of an error', async () => {
    for (const stream of [false, true]) {
      const echo = { error: { message: 'Incorrect API key provided: scripted-upstream.' } }
      const answer = await call(pair, await bytesScript(400, {}, json(echo)), { stream })
      expect(answer.status).toBe(400)
      expect(answer.text).toContain('[redacted]')
      expect(answer.text + JSON.stringify(answer.headers)).not.toContain('scripted-upstream')
    }
    const under200 = await registerScript(gateway(), [
      { json: { type: 'error', error: { message: 'Wrong key scripted-upstream.' } } },
    ])
    const answer = await call(pair, under200)
    expect(answer.status).toBe(502)
    expect(answer.text).not.toContain('scripted-upstream')
  })

  it('reads gzip of the upstream, in answers and errors', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const whole = await bytesScript(200, headers, gzipSync(json(upstream.whole('packed é'))))
    const answer = await call(pair, whole)
    expect(wholeText(jsonOf(answer))).toBe('packed é')
    expect(answer.headers['content-encoding']).toBeUndefined()
    const frames = [...upstream.opening, upstream.text('packed é'), ...upstream.ending].join('')
    const streamed = { ...headers, 'content-type': 'text/event-stream' }
    const packed = await bytesScript(200, streamed, gzipSync(frames))
    const { text } = await call(pair, packed, { stream: true })
    expect(streamedText(text)).toBe('packed é')
    expect(text.endsWith(endOf(route))).toBe(true)
    const error = await call(
      pair,
      await bytesScript(400, headers, gzipSync(json({ error: { message: 'No.' } }))),
    )
    expect(error.text).toContain('No.')
  })

  it('charges nothing for an error of the upstream, and records it', async () => {
    const poor = await createTenant(gateway())
    const answer = await call(pair, 'script:error-400', {}, poor.key)
    expect(answer.status).toBe(400)
    const entry = await auditEntryOf(gateway(), poor, answer.headers['x-request-id'])
    expect(entry).toMatchObject({
      status: 400,
      credits_settled: 0,
      surface: route.surface,
      model: pair.model,
    })
    expect(entry.record).toMatchObject({
      errorCode: 'upstream_error',
      usage: null,
      cost: 0,
      attempts: [{ provider: pair.provider, status: 400, failure: null }],
    })
    expect((await settledCredits(gateway(), poor)).balance).toBe(1_000_000_000)
  })

  it('ends a stream that it did not ask for', async () => {
    const text = marker()
    const script = await registerScript(gateway(), [
      { sse: [...upstream.opening, upstream.text('a')] },
      { waitForSignal: text },
    ])
    const answer = await call(pair, `${text} ${script}`)
    expect(answer.status).toBe(502)
    expect(answer.text).toContain('The upstream streamed an answer that was asked for whole.')
    await seenRequest(gateway(), text, ({ clientClosedAt }) => clientClosedAt !== null)
  })
})

describe('a context that is too long', () => {
  const pair = MESSAGES_ON_CHAT
  const asked = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
  it.each([
    ['OpenAI says it', { message: asked, type: 'invalid_request_error', code: 'context_length_exceeded' }],
    ['vLLM says it', { message: asked, type: 'BadRequestError', code: 400 }],
    [
      'one text is longer than all may be',
      { message: 'Expected a string with maximum length 10.', code: 'string_above_max_length' },
    ],
  ])('reads as clients of messages know it, as %s', async (_who, error) => {
    const answer = await call(
      pair,
      await bytesScript(400, { 'content-type': 'application/json' }, json({ error })),
    )
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: `prompt is too long: ${error.message}` },
      request_id: answer.headers['request-id'],
    })
  })

  it('is not told twice, and never longer than a message may be', async () => {
    const error = { message: 'prompt is too long: 9 > 8', code: 'context_length_exceeded' }
    const known = await call(pair, await bytesScript(400, {}, json({ error })))
    expect(known.text).toContain('"message":"prompt is too long: 9 > 8"')
    const long = await call(
      pair,
      await bytesScript(400, {}, json({ error: { message: 'x'.repeat(100_000) } })),
    )
    expect(long.text.length).toBeLessThan(10_000)
  })
})
