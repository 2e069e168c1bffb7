import type Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, credits } from '../harness/records.ts'
import {
  anthropicClients,
  failureOf,
  MESSAGES_MODEL,
  messageRequest,
  newestAnthropic,
  SCRIPTED_TEXT,
  textOf,
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

describe.concurrent.each(anthropicClients)('%s', (_, Client) => {
  const connect = (options: ConstructorParameters<typeof Anthropic>[0] = {}): Anthropic =>
    new Client({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0, ...options })
  const connectThere = (options: object = {}) => connect({ baseURL: edge.url, ...options })
  const ask = (text: string, options?: ConstructorParameters<typeof Anthropic>[0]) =>
    connect(options).messages.create(messageRequest(text))

  it.each([
    ['x-api-key', { apiKey: 'wrong-key' }],
    ['a bearer token', { apiKey: null, authToken: 'wrong-key' }],
  ])('raises a wrong key in %s as AuthenticationError, at once', async (_way, credential) => {
    const watched = watchedFetch()
    const error = await failureOf(ask('x', { ...credential, fetch: watched.fetch, maxRetries: 2 }))
    expect(error).toBeInstanceOf(Client.AuthenticationError)
    expect(error).toMatchObject({
      status: 401,
      type: 'authentication_error',
      requestID: expect.stringMatching(/^req_/),
    })
    expect(String(error)).not.toContain('wrong-key')
    expect(watched.attempts).toHaveLength(1)
  })

  const errors = [
    ['error-400', 'BadRequestError', { status: 400, type: 'invalid_request_error' }],
    ['error-404', 'NotFoundError', { status: 404, type: 'not_found_error' }],
    ['error-429', 'RateLimitError', { status: 429, type: 'rate_limit_error' }],
    ['error-500', 'InternalServerError', { status: 500, type: 'api_error' }],
    ['error-529', 'InternalServerError', { status: 529, type: 'overloaded_error' }],
    ['empty-body', 'InternalServerError', { status: 502, type: 'api_error' }],
    ['not-json', 'InternalServerError', { status: 502, type: 'api_error' }],
  ] as const
  // An older version differs in how it reads errors, not in which it gets.
  it.each(Client === newestAnthropic ? errors : errors.filter(([script]) => /400|529|json/.test(script)))(
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
    ['mid-stream-cut', 'api_error'],
    ['mid-stream-end', 'api_error'],
    ['mid-stream-error', 'overloaded_error'],
  ])('raises %s out of the stream helper', async (script, type) => {
    const stream = connect().messages.stream(messageRequest(`script:${script}`))
    const deltas: string[] = []
    stream.on('text', (delta) => deltas.push(delta))
    const error = await failureOf(stream.finalMessage())
    expect(error).toBeInstanceOf(Client.APIError)
    expect(error).toMatchObject({ error: { type: 'error', error: { type } } })
    expect(SCRIPTED_TEXT.startsWith(deltas.join(''))).toBe(true)
    expect(deltas.length).toBeGreaterThanOrEqual(3)
  })

  it('raises a stream that fails before its first event as an HTTP error', async () => {
    const stream = connect().messages.stream(messageRequest('script:empty-stream'))
    expect(await failureOf(stream.finalMessage())).toMatchObject({ status: 502, type: 'api_error' })
  })

  it('ends the upstream and settles when a stream is aborted', async () => {
    const text = marker()
    const stream = connectThere().messages.stream(messageRequest(`${text} script:stall`))
    stream.on('text', (_delta, snapshot) => {
      if (snapshot === 'This is the') stream.abort()
    })
    expect(await failureOf(stream.finalMessage())).toBeInstanceOf(Client.APIUserAbortError)
    await seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)
    const { record, status } = await auditEntryOf(gateway(), tenant, stream.request_id)
    expect({ status, flags: record.flags }).toEqual({ status: 499, flags: ['client_left'] })
  })

  // What follows is the gateway's doing and not the client's, so one version stands for both.
  if (Client !== newestAnthropic) return

  it('raises a model without a grant as PermissionDeniedError', async () => {
    const error = await failureOf(ask('x', { apiKey: withoutModels.key }))
    expect(error).toBeInstanceOf(Client.PermissionDeniedError)
    expect(error).toMatchObject({ status: 403, type: 'permission_error' })
    expect(await auditEntryOf(gateway(), withoutModels, error.requestID)).toMatchObject({ status: 403 })
  })

  it('raises an unknown model as NotFoundError and an invalid body as BadRequestError', async () => {
    const unknown = await failureOf(connect().messages.create({ ...messageRequest('x'), model: 'no-such' }))
    expect(unknown).toBeInstanceOf(Client.NotFoundError)
    expect(unknown).toMatchObject({ status: 404, type: 'not_found_error' })
    const empty = await failureOf(connect().messages.create({ ...messageRequest('x'), messages: [] }))
    expect(empty).toBeInstanceOf(Client.BadRequestError)
    expect(empty).toMatchObject({ status: 400, type: 'invalid_request_error' })
    const counted = await failureOf(connect().messages.countTokens({ model: MESSAGES_MODEL, messages: [] }))
    expect(counted).toMatchObject({ status: 400, type: 'invalid_request_error' })
  })

  it('does not retry without credits, although it is a 429', async () => {
    const watched = watchedFetch()
    const error = await failureOf(
      ask('x', { apiKey: withoutCredits.key, fetch: watched.fetch, maxRetries: 2 }),
    )
    expect(error).toBeInstanceOf(Client.RateLimitError)
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' })
    expect(Number((error.headers as Headers).get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(watched.attempts).toHaveLength(1)
    expect(await credits(gateway(), withoutCredits)).toMatchObject({ balance: 0, reserved: 0 })
  })

  it('raises its own rate limit with Retry-After', async () => {
    const limited = await createTenant(gateway(), { user: { rate_limit_per_minute: 1 } })
    await ask('the first', { apiKey: limited.key })
    const error = await failureOf(ask('the second', { apiKey: limited.key }))
    expect(error).toBeInstanceOf(Client.RateLimitError)
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' })
    expect(Number((error.headers as Headers).get('retry-after'))).toBeGreaterThanOrEqual(1)
  })

  it('raises the errors of token counting too', async () => {
    const { max_tokens: _tokens, ...counted } = messageRequest('script:error-429')
    const error = await failureOf(connect().messages.countTokens(counted))
    expect(error).toBeInstanceOf(Client.RateLimitError)
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' })
  })

  it('retries a 429 after as long as the upstream asks, and a 529', async () => {
    const text = await recovering(
      'messages',
      { status: 429, headers: { 'retry-after': '1' } },
      { status: 529 },
    )
    const watched = watchedFetch()
    expect(textOf(await ask(text, { fetch: watched.fetch, maxRetries: 2 }))).toBe(SCRIPTED_TEXT)
    await expectRetried(tenant, watched.attempts, [429, 529, 200])
  })

  it('ends the upstream when a loop over a stream is left', async () => {
    const text = marker()
    const stream = await connectThere().messages.create({
      ...messageRequest(`${text} script:stall`),
      stream: true,
    })
    for await (const _event of stream) break
    await seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)
  })

  it('ends the upstream when a call is aborted before its answer', async () => {
    const text = marker()
    const abort = new AbortController()
    const call = connectThere().messages.create(
      messageRequest(`${text} script:slow-headers signal=never-${text}`),
      { signal: abort.signal },
    )
    const failure = failureOf(call)
    await seenRequest(gateway(), text)
    abort.abort()
    expect(await failure).toBeInstanceOf(Client.APIUserAbortError)
    await seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)
  })

  it('gives up by its own time-out, and so does the upstream call', async () => {
    const text = marker()
    const call = connectThere({ timeout: 300 }).messages.create(
      messageRequest(`${text} script:slow-headers signal=never-${text}`),
    )
    expect(await failureOf(call)).toBeInstanceOf(Client.APIConnectionTimeoutError)
    await seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)
  })
})
