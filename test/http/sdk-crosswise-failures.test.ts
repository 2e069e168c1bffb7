import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import {
  anthropicClients,
  CHAT_MODEL,
  failureOf,
  MESSAGES_MODEL,
  messageRequest,
  newestAnthropic,
  newestOpenAi,
  openAiClients,
  openAiUrl,
  SCRIPTED_TEXT,
  textOf,
  userMessage,
  watchedFetch,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import { expectRetried, recovering } from './support/recovery.ts'

// What fails at an upstream of the other protocol has to raise what it raises at one of the same.

let tenant: Tenant
/** In the tests of clients that leave. */
let edge: Edge
beforeAll(async () => {
  edge = await startEdge(gateway().baseUrl)
  tenant = await createTenant(gateway())
})
afterAll(() => edge.close())

/** Expects the record of a call that failed upstream: its status, and no charge. */
async function expectUncharged(error: Record<string, unknown>, status: number) {
  const entry = await auditEntryOf(gateway(), tenant, error.requestID)
  expect(entry).toMatchObject({ status, credits_settled: 0 })
}

const upstreamClosed = (text: string) =>
  seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)

describe.concurrent.each(openAiClients)('%s on a messages model', (_, Client) => {
  const connect = (options: ConstructorParameters<typeof OpenAI>[0] = {}): OpenAI =>
    new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0, ...options })
  const connectThere = (options: object = {}) => connect({ baseURL: `${edge.url}/v1`, ...options })
  const requestOf = (text: string) => ({ model: MESSAGES_MODEL, messages: userMessage(text) })

  // The body is the upstream's own, whatever protocol it speaks (interface: Errors, Chat completions).
  const errors = [
    ['error-400', 'BadRequestError', { status: 400, type: 'invalid_request_error' }],
    ['error-404', 'NotFoundError', { status: 404, type: 'not_found_error' }],
    ['error-429', 'RateLimitError', { status: 429, type: 'rate_limit_error' }],
    ['error-500', 'InternalServerError', { status: 500, type: 'api_error' }],
    ['error-529', 'InternalServerError', { status: 529, type: 'overloaded_error' }],
    ['error-html-502', 'InternalServerError', { status: 502 }],
    ['empty-body', 'InternalServerError', { status: 502, type: 'server_error', code: 'upstream_empty_body' }],
    ['not-json', 'InternalServerError', { status: 502, type: 'server_error', code: 'upstream_empty_body' }],
  ] as const
  // An older version differs in how it reads errors, not in which it gets.
  it.each(Client === newestOpenAi ? errors : errors.filter(([script]) => /400|529|json/.test(script)))(
    'raises what comes of %s as %s',
    async (script, type, members) => {
      const error = await failureOf(connect().chat.completions.create(requestOf(`script:${script}`)))
      expect(error).toBeInstanceOf(Client[type])
      expect(error).toMatchObject({ ...members, requestID: expect.stringMatching(/^req_/) })
      await expectUncharged(error, members.status)
    },
  )

  it.each(
    Client === newestOpenAi ? ['mid-stream-cut', 'mid-stream-end', 'mid-stream-error'] : ['mid-stream-error'],
  )('raises %s out of the iterator, after what had come', async (script) => {
    const request = { ...requestOf(`script:${script}`), stream: true as const }
    const stream = await connect().chat.completions.create(request)
    const seen: string[] = []
    const error = await failureOf(
      (async () => {
        for await (const chunk of stream) seen.push(chunk.choices[0]?.delta.content ?? '')
      })(),
    )
    expect(error).toBeInstanceOf(Client.APIError)
    expect(error).toMatchObject({ type: 'server_error', code: 'stream_error' })
    expect(SCRIPTED_TEXT.startsWith(seen.join(''))).toBe(true)
    expect(seen.join('').startsWith('This is the')).toBe(true)
  })

  // What follows is the gateway's doing and not the client's, so one version stands for both.
  if (Client !== newestOpenAi) return

  it('retries a 429 after as long as the upstream asks, and a 529', async () => {
    const text = await recovering(
      'messages',
      { status: 429, headers: { 'retry-after': '1' } },
      { status: 529 },
    )
    const watched = watchedFetch()
    const client = connect({ fetch: watched.fetch, maxRetries: 2 })
    const completion = await client.chat.completions.create(requestOf(text))
    expect(completion.choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    await expectRetried(tenant, watched.attempts, [429, 529, 200])
  })

  it.each([
    ['empty-stream', { status: 502, type: 'server_error' }],
    ['first-event-error', { status: 529, type: 'overloaded_error' }],
  ])('raises %s, which fails before its first event, as an HTTP error', async (script, members) => {
    const request = { ...requestOf(`script:${script}`), stream: true as const }
    const error = await failureOf(connect().chat.completions.create(request))
    expect(error).toBeInstanceOf(Client.InternalServerError)
    expect(error).toMatchObject(members)
  })

  it('ends the upstream and settles when a stream is aborted', async () => {
    const text = marker()
    const abort = new AbortController()
    const { data, request_id: requestId } = await connectThere()
      .chat.completions.create(
        { ...requestOf(`${text} script:stall`), stream: true },
        { signal: abort.signal },
      )
      .withResponse()
    const seen: string[] = []
    for await (const chunk of data) {
      seen.push(chunk.choices[0]?.delta.content ?? '')
      if (seen.join('') === 'This is the') abort.abort()
    }
    expect(seen.join('')).toBe('This is the')
    await upstreamClosed(text)
    const { record, status } = await auditEntryOf(gateway(), tenant, requestId)
    expect({ status, flags: record.flags }).toEqual({ status: 499, flags: ['client_left'] })
  })

  it('ends the upstream when a loop is left, a call aborted, or its time is over', async () => {
    const [left, aborted, late] = [marker(), marker(), marker()]
    const stream = await connectThere().chat.completions.create({
      ...requestOf(`${left} script:stall`),
      stream: true,
    })
    for await (const _chunk of stream) break
    await upstreamClosed(left)
    const slow = (text: string) => requestOf(`${text} script:slow-headers signal=never-${text}`)
    const abort = new AbortController()
    const failure = failureOf(connectThere().chat.completions.create(slow(aborted), { signal: abort.signal }))
    await seenRequest(gateway(), aborted)
    abort.abort()
    expect(await failure).toBeInstanceOf(Client.APIUserAbortError)
    await upstreamClosed(aborted)
    const timed = connectThere({ timeout: 300 }).chat.completions.create(slow(late))
    expect(await failureOf(timed)).toBeInstanceOf(Client.APIConnectionTimeoutError)
    await upstreamClosed(late)
  })
})

describe.concurrent.each(anthropicClients)('%s on a chat model', (_, Client) => {
  const connect = (options: ConstructorParameters<typeof Anthropic>[0] = {}): Anthropic =>
    new Client({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0, ...options })
  const connectThere = (options: object = {}) => connect({ baseURL: edge.url, ...options })
  const requestOf = (text: string) => ({ ...messageRequest(text), model: CHAT_MODEL })

  const errors = [
    ['error-400', 'BadRequestError', { status: 400, type: 'invalid_request_error' }],
    ['error-404', 'NotFoundError', { status: 404, type: 'not_found_error' }],
    ['error-429', 'RateLimitError', { status: 429, type: 'rate_limit_error' }],
    ['error-500', 'InternalServerError', { status: 500, type: 'api_error' }],
    ['error-529', 'InternalServerError', { status: 529, type: 'overloaded_error' }],
    ['error-html-502', 'InternalServerError', { status: 502, type: 'api_error' }],
    ['empty-body', 'InternalServerError', { status: 502, type: 'api_error' }],
    ['not-json', 'InternalServerError', { status: 502, type: 'api_error' }],
  ] as const
  // An older version differs in how it reads errors, not in which it gets.
  it.each(Client === newestAnthropic ? errors : errors.filter(([script]) => /400|529|json/.test(script)))(
    'raises what comes of %s as %s',
    async (script, type, members) => {
      const error = await failureOf(connect().messages.create(requestOf(`script:${script}`)))
      expect(error).toBeInstanceOf(Client[type])
      expect(error).toMatchObject({ ...members, requestID: expect.stringMatching(/^req_/) })
      await expectUncharged(error, members.status)
    },
  )

  it.each(
    Client === newestAnthropic
      ? ['mid-stream-cut', 'mid-stream-end', 'mid-stream-error']
      : ['mid-stream-error'],
  )('raises %s out of the stream helper', async (script) => {
    const stream = connect().messages.stream(requestOf(`script:${script}`))
    const deltas: string[] = []
    stream.on('text', (delta) => deltas.push(delta))
    const error = await failureOf(stream.finalMessage())
    expect(error).toBeInstanceOf(Client.APIError)
    expect(error).toMatchObject({ error: { type: 'error', error: { type: 'api_error' } } })
    expect(deltas.join('')).toBe('This is the')
  })

  // What follows is the gateway's doing and not the client's, so one version stands for both.
  if (Client !== newestAnthropic) return

  it('retries a 429 after as long as the upstream asks, and a 500', async () => {
    const text = await recovering('chat', { status: 429, headers: { 'retry-after': '1' } }, { status: 500 })
    const watched = watchedFetch()
    const client = connect({ fetch: watched.fetch, maxRetries: 2 })
    expect(textOf(await client.messages.create(requestOf(text)))).toBe(SCRIPTED_TEXT)
    await expectRetried(tenant, watched.attempts, [429, 500, 200])
  })

  it.each([
    ['empty-stream', 502],
    ['first-event-error', 500],
  ])('raises %s, which fails before its first event, as an HTTP error', async (script, status) => {
    const stream = connect().messages.stream(requestOf(`script:${script}`))
    const error = await failureOf(stream.finalMessage())
    expect(error).toMatchObject({ status, type: 'api_error' })
  })

  it('ends the upstream and settles when a stream is aborted', async () => {
    const text = marker()
    const stream = connectThere().messages.stream(requestOf(`${text} script:stall`))
    stream.on('text', (_delta, snapshot) => {
      if (snapshot === 'This is the') stream.abort()
    })
    expect(await failureOf(stream.finalMessage())).toBeInstanceOf(Client.APIUserAbortError)
    await upstreamClosed(text)
    const { record, status } = await auditEntryOf(gateway(), tenant, stream.request_id)
    expect({ status, flags: record.flags }).toEqual({ status: 499, flags: ['client_left'] })
  })

  it('ends the upstream when a loop is left, a call aborted, or its time is over', async () => {
    const [left, aborted, late] = [marker(), marker(), marker()]
    const stream = await connectThere().messages.create({
      ...requestOf(`${left} script:stall`),
      stream: true,
    })
    for await (const _event of stream) break
    await upstreamClosed(left)
    const slow = (text: string) => requestOf(`${text} script:slow-headers signal=never-${text}`)
    const abort = new AbortController()
    const failure = failureOf(connectThere().messages.create(slow(aborted), { signal: abort.signal }))
    await seenRequest(gateway(), aborted)
    abort.abort()
    expect(await failure).toBeInstanceOf(Client.APIUserAbortError)
    await upstreamClosed(aborted)
    const timed = connectThere({ timeout: 300 }).messages.create(slow(late))
    expect(await failureOf(timed)).toBeInstanceOf(Client.APIConnectionTimeoutError)
    await upstreamClosed(late)
  })
})
