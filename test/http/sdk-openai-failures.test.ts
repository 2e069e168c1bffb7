import type OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, credits } from '../harness/records.ts'
import {
  chatRequest,
  collect,
  failureOf,
  newestOpenAi,
  openAiClients,
  openAiUrl,
  SCRIPTED_TEXT,
  watchedFetch,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import { expectRetried, recovering } from './support/recovery.ts'

let tenant: Tenant
let withoutModels: Tenant
let withoutCredits: Tenant
/** In the tests of clients that leave. */
let edge: Edge
beforeAll(async () => {
  edge = await startEdge(gateway().baseUrl)
  const tenants = [{}, { models: [] }, { credits: 0 }].map((options) => createTenant(gateway(), options))
  ;[tenant, withoutModels, withoutCredits] = (await Promise.all(tenants)) as [Tenant, Tenant, Tenant]
})

afterAll(() => edge.close())

describe.concurrent.each(openAiClients)('%s', (_, Client) => {
  const connect = (options: ConstructorParameters<typeof OpenAI>[0] = {}): OpenAI =>
    new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0, ...options })
  const connectThere = (options: object = {}) => connect({ baseURL: `${edge.url}/v1`, ...options })
  const ask = (text: string, options?: ConstructorParameters<typeof OpenAI>[0]) =>
    connect(options).chat.completions.create(chatRequest(text))

  it('raises a wrong key as AuthenticationError, at once', async () => {
    const watched = watchedFetch()
    const error = await failureOf(ask('x', { apiKey: 'wrong-key', fetch: watched.fetch, maxRetries: 2 }))
    expect(error).toBeInstanceOf(Client.AuthenticationError)
    expect(error).toMatchObject({ status: 401, requestID: expect.stringMatching(/^req_/) })
    expect(String(error)).not.toContain('wrong-key')
    expect(watched.attempts).toHaveLength(1)
  })

  const errors = [
    ['error-400', 'BadRequestError', { status: 400, code: 'unsupported_value', param: 'temperature' }],
    ['error-404', 'NotFoundError', { status: 404, code: 'model_not_found' }],
    ['error-429', 'RateLimitError', { status: 429, type: 'requests', code: 'rate_limit_exceeded' }],
    ['error-500', 'InternalServerError', { status: 500, type: 'server_error' }],
    ['error-529', 'InternalServerError', { status: 529, type: 'server_error' }],
    ['error-html-502', 'InternalServerError', { status: 502 }],
    ['empty-body', 'InternalServerError', { status: 502, type: 'server_error', code: 'upstream_empty_body' }],
    ['not-json', 'InternalServerError', { status: 502, type: 'server_error', code: 'upstream_empty_body' }],
  ] as const
  // An older version differs in how it reads errors, not in which it gets.
  it.each(Client === newestOpenAi ? errors : errors.filter(([script]) => /400|529|json/.test(script)))(
    'raises what comes of %s as %s',
    async (script, type, members) => {
      const error = await failureOf(ask(`script:${script}`))
      expect(error).toBeInstanceOf(Client[type])
      expect(error).toMatchObject({ ...members, requestID: expect.stringMatching(/^req_/) })
      const { status, credits_settled: cost } = await auditEntryOf(gateway(), tenant, error.requestID)
      expect({ status, cost }).toEqual({ status: members.status, cost: 0 })
    },
  )

  it.each([
    ['mid-stream-cut', { type: 'server_error', code: 'stream_error' }],
    ['mid-stream-end', { type: 'server_error', code: 'stream_error' }],
    ['mid-stream-error', { type: 'server_error' }],
  ])('raises %s out of the iterator, after what had come', async (script, members) => {
    const stream = await connect().chat.completions.create({
      ...chatRequest(`script:${script}`),
      stream: true,
    })
    const seen: string[] = []
    const error = await failureOf(
      (async () => {
        for await (const chunk of stream) seen.push(chunk.choices[0]?.delta.content ?? '')
      })(),
    )
    expect(error).toBeInstanceOf(Client.APIError)
    expect(error).toMatchObject(members)
    expect(seen.join('')).toBe('This is the')
  })

  it('raises a stream that fails before its first event as an HTTP error', async () => {
    const call = connect().chat.completions.create({ ...chatRequest('script:empty-stream'), stream: true })
    expect(await failureOf(call)).toMatchObject({ status: 502, code: 'upstream_empty_body' })
  })

  it('ends the upstream and settles when a stream is aborted', async () => {
    const text = marker()
    const abort = new AbortController()
    const { data, request_id: requestId } = await connectThere()
      .chat.completions.create(
        { ...chatRequest(`${text} script:stall`), stream: true },
        { signal: abort.signal },
      )
      .withResponse()
    const seen: string[] = []
    for await (const chunk of data) {
      seen.push(chunk.choices[0]?.delta.content ?? '')
      if (seen.join('') === 'This is the') abort.abort()
    }
    expect(seen.join('')).toBe('This is the')
    await seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)
    const { record, status } = await auditEntryOf(gateway(), tenant, requestId)
    expect({ status, flags: record.flags }).toEqual({ status: 499, flags: ['client_left'] })
  })

  it('can go on with the same client after failures', async () => {
    const client = connect()
    await failureOf(client.chat.completions.create(chatRequest('script:error-500')))
    const chunks = await collect(
      await client.chat.completions.create({ ...chatRequest('script:canned'), stream: true }),
    )
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(SCRIPTED_TEXT)
  })

  // What follows is the gateway's doing and not the client's, so one version stands for both.
  if (Client !== newestOpenAi) return

  it('raises a model without a grant as PermissionDeniedError', async () => {
    const error = await failureOf(ask('x', { apiKey: withoutModels.key }))
    expect(error).toBeInstanceOf(Client.PermissionDeniedError)
    expect(error).toMatchObject({ status: 403, type: 'permission_error', code: 'model_access_denied' })
    const entry = await auditEntryOf(gateway(), withoutModels, error.requestID)
    expect(entry).toMatchObject({ status: 403, model: 'scripted-chat', credits_settled: 0 })
  })

  it('raises an unknown model and an invalid body as BadRequestError', async () => {
    const unknown = await failureOf(
      connect().chat.completions.create({ ...chatRequest('x'), model: 'no-such' }),
    )
    expect(unknown).toBeInstanceOf(Client.BadRequestError)
    expect(unknown).toMatchObject({ status: 400, type: 'invalid_request_error', code: 'model_not_found' })
    const empty = await failureOf(connect().chat.completions.create({ ...chatRequest('x'), messages: [] }))
    expect(empty).toBeInstanceOf(Client.BadRequestError)
    expect(empty).toMatchObject({ status: 400, type: 'invalid_request_error', code: 'invalid_body' })
  })

  it('does not retry without credits, although it is a 429', async () => {
    const watched = watchedFetch()
    const error = await failureOf(
      ask('x', { apiKey: withoutCredits.key, fetch: watched.fetch, maxRetries: 2 }),
    )
    expect(error).toBeInstanceOf(Client.RateLimitError)
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error', code: undefined })
    expect(Number((error.headers as Headers).get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(watched.attempts).toHaveLength(1)
    expect(await credits(gateway(), withoutCredits)).toMatchObject({ balance: 0, reserved: 0 })
  })

  it('raises its own rate limit with Retry-After', async () => {
    const limited = await createTenant(gateway(), { user: { rate_limit_per_minute: 1 } })
    await ask('the first', { apiKey: limited.key })
    const error = await failureOf(ask('the second', { apiKey: limited.key }))
    expect(error).toBeInstanceOf(Client.RateLimitError)
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error', code: undefined })
    expect(Number((error.headers as Headers).get('retry-after'))).toBeGreaterThanOrEqual(1)
  })

  it('retries a 429 after as long as the upstream asks, and a 500', async () => {
    const text = await recovering('chat', { status: 429, headers: { 'retry-after': '1' } }, { status: 500 })
    const watched = watchedFetch()
    const completion = await ask(text, { fetch: watched.fetch, maxRetries: 2 })
    expect(completion.choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    await expectRetried(tenant, watched.attempts, [429, 500, 200])
  })

  it('gives up after its retries', async () => {
    const text = await recovering(
      'chat',
      ...Array.from({ length: 4 }, () => ({ status: 503, headers: { 'retry-after-ms': '5' } })),
    )
    const watched = watchedFetch()
    const error = await failureOf(ask(text, { fetch: watched.fetch, maxRetries: 2 }))
    expect(error).toMatchObject({ status: 503 })
    expect(watched.attempts.map(({ status }) => status)).toEqual([503, 503, 503])
  })

  it('ends the upstream when a loop over a stream is left', async () => {
    const text = marker()
    const stream = await connectThere().chat.completions.create({
      ...chatRequest(`${text} script:stall`),
      stream: true,
    })
    for await (const _chunk of stream) break
    await seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)
  })

  it('ends the upstream when a call is aborted before its answer', async () => {
    const text = marker()
    const abort = new AbortController()
    const call = connectThere().chat.completions.create(
      chatRequest(`${text} script:slow-headers signal=never-${text}`),
      {
        signal: abort.signal,
      },
    )
    const failure = failureOf(call)
    await seenRequest(gateway(), text)
    abort.abort()
    expect(await failure).toBeInstanceOf(Client.APIUserAbortError)
    await seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)
  })

  it('gives up by its own time-out, and so does the upstream call', async () => {
    const text = marker()
    const call = connectThere({ timeout: 300 }).chat.completions.create(
      chatRequest(`${text} script:slow-headers signal=never-${text}`),
    )
    expect(await failureOf(call)).toBeInstanceOf(Client.APIConnectionTimeoutError)
    await seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)
  })
})
