import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, query, upstreamControl } from '../harness/gateway.ts'
import { auditEntryOf, settledCredits } from '../harness/records.ts'
import {
  CHAT_MODEL,
  failureOf,
  openAiClients,
  openAiUrl,
  SCRIPTED_TEXT,
  watchedFetch,
} from '../harness/sdk-clients.ts'
import { jsonOf } from '../harness/send.ts'
import { createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerAnswers, registerScript, seenRequest } from '../harness/upstream.ts'
import { framesOf, say } from './support/dlp-answers.ts'
import { listItems } from './support/response-calls.ts'
import { CORNER_WAYS, postResponse, RESPONSE_WAYS, respond } from './support/response-streams.ts'

let tenant: Tenant
let owner: Tenant
beforeAll(async () => {
  ;[tenant, owner] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
})

const JSON_TYPE = { 'content-type': 'application/json' }
const errorStep = (status: number, headers: Record<string, string> = {}) => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  body: JSON.stringify({ type: 'error', error: { message: `not now (${status})`, type: 'whatever' } }),
})
const streamStep = (frames: string[]) => [
  { status: 200, headers: { 'content-type': 'text/event-stream' } },
  { sse: frames },
]

const REFUSALS: Array<[status: number, type: string, retryAfter?: string]> = [
  [400, 'invalid_request_error'],
  [404, 'invalid_request_error'],
  [413, 'invalid_request_error'],
  [422, 'invalid_request_error'],
  [429, 'rate_limit_error', '7'],
  [500, 'server_error'],
  [503, 'server_error', '3'],
  [529, 'server_error'],
]

describe.each(RESPONSE_WAYS)("a provider's refusal (%s)", (name, { upstream, model, stream }) => {
  // The rendering of a status does not depend on the form: one way has every status, the others one with `Retry-After`
  // and one without.
  const isCorner = CORNER_WAYS.some(([corner]) => corner === name)
  const refusals =
    name === CORNER_WAYS[0]?.[0] ? REFUSALS : REFUSALS.filter(([status]) => status === 429 || status === 500)

  it.concurrent.each(refusals)('is an HTTP error with status %i', async (status, type, retryAfter) => {
    const headers: Record<string, string> = retryAfter ? { 'retry-after': retryAfter } : {}
    const input = await registerScript(gateway(), [errorStep(status, headers)])
    const answer = await postResponse(tenant.key, { model, stream, input })
    expect(answer.status).toBe(status)
    expect(answer.headers['content-type']).toContain('application/json')
    expect(answer.headers['retry-after']).toBe(retryAfter)
    expect(answer.headers['x-headgate-error-source']).toBe('provider')
    const whose = status === 429 ? "A limit of the model's provider is reached: " : ''
    expect(jsonOf(answer)).toEqual({
      error: { message: `${whose}not now (${status})`, type, code: expect.stringMatching(/^[a-z_]+$/) },
    })
  })

  const nothings = isCorner ? ['empty-stream', 'empty-body', 'not-json'] : ['empty-stream']
  it.concurrent.each(nothings)('is a 502 for %s', async (script) => {
    const answer = await postResponse(tenant.key, { model, stream, input: `script:${script}` })
    expect(answer.status).toBe(502)
    expect(jsonOf(answer)).toMatchObject({ error: { type: 'server_error', code: 'upstream_empty_body' } })
  })

  it.runIf(isCorner).concurrent('has a Retry-After with every 429', async () => {
    const input = await registerScript(gateway(), [errorStep(429)])
    const answer = await postResponse(tenant.key, { model, stream, input })
    expect([answer.status, answer.headers['retry-after']]).toEqual([429, '1'])
  })

  it.runIf(isCorner)('leaves nothing but its record', async () => {
    const { response } = await respond(owner.key, { model, stream, input: 'Hello' })
    const conversation = response.conversation?.id
    const stored = () =>
      query(gateway(), 'select id, status from responses where user_id = $1', [owner.userId])
    const [before, { balance }] = await Promise.all([stored(), settledCredits(gateway(), owner)])
    const input = await registerScript(gateway(), [errorStep(503)])
    for (const more of [{ conversation }, {}, { store: false }]) {
      const answer = await postResponse(owner.key, { model, stream, input, ...more })
      expect(answer.status).toBe(503)
      const entry = await auditEntryOf(gateway(), owner, answer.headers['x-request-id'])
      expect(entry).toMatchObject({ surface: 'responses', status: 503, credits_settled: 0, model })
    }
    expect(await stored()).toEqual(before)
    const writers = await query(gateway(), 'select writer from conversations where user_id = $1', [
      owner.userId,
    ])
    expect(writers.every(({ writer }) => writer === null)).toBe(true)
    expect((await settledCredits(gateway(), owner)).balance).toBe(balance)
    // The conversation is not locked.
    const { response: next } = await respond(owner.key, { model, stream, input: 'Again.', conversation })
    expect(next.status).toBe('completed')
    expect((await listItems(owner.key, `/v1/conversations/${conversation}/items`)).data).toHaveLength(4)
  })

  it.concurrent('that comes later fails a stream in band, and is still an HTTP error of a whole response', async () => {
    const signal = uniqueName('signal')
    const input = await registerScript(gateway(), [{ waitForSignal: signal }, errorStep(503)])
    const pending = postResponse(tenant.key, { model, stream, input })
    await seenRequest(gateway(), input)
    await new Promise((resolve) => setTimeout(resolve, 1_300))
    await upstreamControl(gateway()).release(signal)
    const answer = await pending
    expect(answer.status).toBe(stream ? 200 : 503)
    if (stream) {
      expect(answer.text).toContain('event: response.created')
      expect(answer.text).toContain('event: response.failed')
    }
  })

  // A busy machine may take longer once.
  it.runIf(stream)('does not delay a stream that begins', { retry: 2 }, async () => {
    const signal = uniqueName('signal')
    const frames = framesOf(upstream, [say('Hello')])
    const input = await registerScript(gateway(), [
      ...streamStep(frames.slice(0, 2)),
      { waitForSignal: signal },
      { sse: frames.slice(2) },
    ])
    const startedAt = Date.now()
    const pending = postResponse(tenant.key, { model, stream, input })
    await upstreamControl(gateway()).release(signal)
    expect((await pending).text).toContain('response.completed')
    expect(Date.now() - startedAt).toBeLessThan(1_000)
  })
})

describe.concurrent.each(openAiClients)('%s', (_, Client) => {
  const recovering = () =>
    registerAnswers(gateway(), [
      { steps: [errorStep(429, { 'retry-after': '1' })] },
      { steps: [errorStep(503)] },
      { steps: streamStep(framesOf('chat', [say(SCRIPTED_TEXT)])) },
    ])

  it.each([true, false])('repeats a refused request (streamed: %s)', async (stream) => {
    const { fetch, attempts } = watchedFetch()
    const client = new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 2, fetch })
    const request = { model: CHAT_MODEL, input: await recovering() }
    const response = stream
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request)
    expect(response.output_text).toBe(SCRIPTED_TEXT)
    expect(attempts.map(({ status }) => status)).toEqual([429, 503, 200])
  })

  it.each([true, false])('throws an error of its class (streamed: %s)', async (stream) => {
    const client = new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
    const refused = (status: number) => registerScript(gateway(), [errorStep(status, { 'retry-after': '4' })])
    const fail = async (status: number) =>
      failureOf(client.responses.create({ model: CHAT_MODEL, input: await refused(status), stream }))
    expect(await fail(429)).toBeInstanceOf(Client.RateLimitError)
    expect(await fail(400)).toBeInstanceOf(Client.BadRequestError)
    const error = await fail(503)
    expect(error).toBeInstanceOf(Client.InternalServerError)
    expect(error).toMatchObject({ status: 503, message: expect.stringContaining('not now (503)') })
  })
})
