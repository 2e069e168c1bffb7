import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, credits } from '../harness/records.ts'
import {
  failureOf,
  MESSAGES_MODEL,
  newestAnthropic,
  SCRIPTED_TEXT,
  watchedFetch,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import { expectRetried, recovering } from './support/recovery.ts'
import { nativeSdkCalls, type SdkCalls, sdkCalls } from './support/sdk-calls.ts'

// Failures raise the same errors of an SDK, whichever protocol the upstream of the model speaks.

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

const upstreamClosed = (text: string) =>
  seenRequest(gateway(), text, (request) => request.clientClosedAt !== null)

/** The text that a stream brought until it ended, and its error if it failed. */
async function readPieces(pieces: AsyncIterable<string>, onText: (text: string) => void = () => {}) {
  let text = ''
  try {
    for await (const piece of pieces) {
      text += piece
      onText(text)
    }
  } catch (error) {
    return { text, error: error as Record<string, unknown> }
  }
  return { text, error: null }
}

const STATUSES = {
  'error-400': ['BadRequestError', 400],
  'error-404': ['NotFoundError', 404],
  'error-429': ['RateLimitError', 429],
  'error-500': ['InternalServerError', 500],
  'error-529': ['InternalServerError', 529],
  'error-html-502': ['InternalServerError', 502],
  'empty-body': ['InternalServerError', 502],
  'not-json': ['InternalServerError', 502],
} as const
type Script = keyof typeof STATUSES

/** Error bodies of the messages protocol by the script of the upstream. */
const MESSAGES_ERRORS: Partial<Record<Script, object>> = {
  'error-400': { type: 'invalid_request_error' },
  'error-404': { type: 'not_found_error' },
  'error-429': { type: 'rate_limit_error' },
  'error-500': { type: 'api_error' },
  'error-529': { type: 'overloaded_error' },
}
const CHAT_ERRORS: Partial<Record<Script, object>> = {
  'error-400': { code: 'unsupported_value', param: 'temperature' },
  'error-404': { code: 'model_not_found' },
  'error-429': { type: 'requests', code: 'rate_limit_exceeded' },
  'error-500': { type: 'server_error' },
  'error-529': { type: 'server_error' },
}

/** Members of the error: a caller of chat completions gets the body of the upstream, whatever its protocol. */
function membersOf({ sdk, dialect }: SdkCalls, script: Script): object {
  const empty = script === 'empty-body' || script === 'not-json'
  if (sdk === 'anthropic') return MESSAGES_ERRORS[script] ?? { type: 'api_error' }
  if (empty) return { type: 'server_error', code: 'upstream_empty_body' }
  return (dialect === 'chat' ? CHAT_ERRORS : MESSAGES_ERRORS)[script] ?? {}
}

/** The error of a stream that breaks off, by SDK and protocol of the model. */
function streamErrorOf({ sdk, dialect }: SdkCalls, script: string): object {
  const native = script === 'mid-stream-error'
  if (sdk === 'anthropic') {
    const type = native && dialect === 'messages' ? 'overloaded_error' : 'api_error'
    return { error: { type: 'error', error: { type } } }
  }
  return native && dialect === 'chat'
    ? { type: 'server_error' }
    : { type: 'server_error', code: 'stream_error' }
}

describe.concurrent.each(sdkCalls)('$name', (calls) => {
  const { Client, newest, ask, stream, dialect } = calls
  const connection = () => ({ apiKey: tenant.key })
  const connectionAtEdge = () => ({ apiKey: tenant.key, baseURL: edge.url })

  // An older version differs in how it reads errors, not in which it gets.
  const scripts = (Object.keys(STATUSES) as Script[]).filter((name) => newest || /400|529|json/.test(name))
  it.each(scripts)('raises an upstream that answers %s, which costs nothing', async (script) => {
    const [type, status] = STATUSES[script]
    const error = await failureOf(ask(connection(), `script:${script}`))
    expect(error).toBeInstanceOf(Client[type])
    expect(error).toMatchObject({
      status,
      ...membersOf(calls, script),
      requestID: expect.stringMatching(/^req_/),
    })
    const entry = await auditEntryOf(gateway(), tenant, error.requestID)
    expect(entry).toMatchObject({ status, credits_settled: 0 })
  })

  it.each(newest ? ['mid-stream-cut', 'mid-stream-end', 'mid-stream-error'] : ['mid-stream-error'])(
    'raises %s after the text that had arrived',
    async (script) => {
      const { pieces } = await stream(connection(), `script:${script}`)
      const { text, error } = await readPieces(pieces)
      expect(error).toBeInstanceOf(Client.APIError)
      expect(error).toMatchObject(streamErrorOf(calls, script))
      expect(SCRIPTED_TEXT.startsWith(text)).toBe(true)
      expect(text.startsWith('This is the')).toBe(true)
    },
  )

  it('ends the upstream and settles when a stream is aborted', async () => {
    const text = marker()
    const abort = new AbortController()
    const { requestId, pieces } = await stream(connectionAtEdge(), `${text} script:stall`, abort.signal)
    const read = await readPieces(pieces, (seen) => {
      if (seen === 'This is the') abort.abort()
    })
    expect(read.text).toBe('This is the')
    // The OpenAI SDK ends the iteration; the Anthropic SDK raises the abort.
    if (calls.sdk === 'anthropic') expect(read.error).toBeInstanceOf(Client.APIUserAbortError)
    await upstreamClosed(text)
    const { record, status } = await auditEntryOf(gateway(), tenant, requestId)
    expect({ status, flags: record.flags }).toEqual({ status: 499, flags: ['client_left'] })
  })

  // The following depends on the gateway and not on the version of the client.
  if (!newest) return

  it.each([
    ['empty-stream', 502],
    ['first-event-error', dialect === 'chat' ? 500 : 529],
  ])('raises %s, which fails before its first event, as an HTTP error', async (script, status) => {
    const error = await failureOf(stream(connection(), `script:${script}`))
    expect(error).toBeInstanceOf(Client.InternalServerError)
    const native = script === 'first-event-error' && dialect === 'messages'
    const other = calls.sdk === 'openai' ? 'server_error' : 'api_error'
    expect(error).toMatchObject({ status, type: native ? 'overloaded_error' : other })
  })

  it('retries a 429 after as long as the upstream asks, and another error', async () => {
    const status = dialect === 'chat' ? 500 : 529
    const text = await recovering(dialect, { status: 429, headers: { 'retry-after': '1' } }, { status })
    const watched = watchedFetch()
    expect(await ask({ ...connection(), fetch: watched.fetch, maxRetries: 2 }, text)).toBe(SCRIPTED_TEXT)
    await expectRetried(tenant, watched.attempts, [429, status, 200])
  })

  it('ends the upstream when a loop is left, a call aborted, or its time is over', async () => {
    const [left, aborted, late] = [marker(), marker(), marker()]
    const { pieces } = await stream(connectionAtEdge(), `${left} script:stall`)
    for await (const _piece of pieces) break
    await upstreamClosed(left)
    const slow = (text: string) => `${text} script:slow-headers signal=never-${text}`
    const abort = new AbortController()
    const failure = failureOf(ask(connectionAtEdge(), slow(aborted), { signal: abort.signal }))
    await seenRequest(gateway(), aborted)
    abort.abort()
    expect(await failure).toBeInstanceOf(Client.APIUserAbortError)
    await upstreamClosed(aborted)
    const timed = ask({ ...connectionAtEdge(), timeout: 300 }, slow(late))
    expect(await failureOf(timed)).toBeInstanceOf(Client.APIConnectionTimeoutError)
    await upstreamClosed(late)
  })
})

describe.concurrent.each(sdkCalls.filter(({ sdk, dialect }) => (sdk === 'openai') === (dialect === 'chat')))(
  'a wrong key of $name',
  ({ Client, sdk, ask }) => {
    const ways = [
      ['its own header', { apiKey: 'wrong-key' }],
      ['a bearer token', { apiKey: null, authToken: 'wrong-key' }],
    ] as const
    it.each(sdk === 'openai' ? ways.slice(0, 1) : ways)(
      'in %s is raised as AuthenticationError, at once',
      async (_way, credential) => {
        const watched = watchedFetch()
        const error = await failureOf(ask({ ...credential, fetch: watched.fetch, maxRetries: 2 }, 'x'))
        expect(error).toBeInstanceOf(Client.AuthenticationError)
        expect(error).toMatchObject({ status: 401, requestID: expect.stringMatching(/^req_/) })
        if (sdk === 'anthropic') expect(error).toMatchObject({ type: 'authentication_error' })
        expect(String(error)).not.toContain('wrong-key')
        expect(watched.attempts).toHaveLength(1)
      },
    )
  },
)

describe.concurrent.each(nativeSdkCalls)('a refusal of the gateway for $name', ({ Client, sdk, ask }) => {
  it('is a PermissionDeniedError for a model without a grant', async () => {
    const error = await failureOf(ask({ apiKey: withoutModels.key }, 'x'))
    expect(error).toBeInstanceOf(Client.PermissionDeniedError)
    expect(error).toMatchObject({ status: 403, type: 'permission_error' })
    if (sdk === 'openai') expect(error).toMatchObject({ code: 'model_access_denied' })
    const entry = await auditEntryOf(gateway(), withoutModels, error.requestID)
    expect(entry).toMatchObject({ status: 403, credits_settled: 0 })
  })

  it('is the error of the protocol for an unknown model and an invalid body', async () => {
    const unknown = await failureOf(ask({ apiKey: tenant.key }, 'x', { body: { model: 'no-such' } }))
    if (sdk === 'openai') {
      expect(unknown).toBeInstanceOf(Client.BadRequestError)
      expect(unknown).toMatchObject({ type: 'invalid_request_error', code: 'model_not_found' })
    } else {
      expect(unknown).toBeInstanceOf(Client.NotFoundError)
      expect(unknown).toMatchObject({ type: 'not_found_error' })
    }
    const empty = await failureOf(ask({ apiKey: tenant.key }, 'x', { body: { messages: [] } }))
    expect(empty).toBeInstanceOf(Client.BadRequestError)
    expect(empty).toMatchObject({ status: 400, type: 'invalid_request_error' })
    if (sdk === 'openai') expect(empty).toMatchObject({ code: 'invalid_body' })
  })

  it('is a RateLimitError without credits, which is not retried', async () => {
    const watched = watchedFetch()
    const error = await failureOf(
      ask({ apiKey: withoutCredits.key, fetch: watched.fetch, maxRetries: 2 }, 'x'),
    )
    expect(error).toBeInstanceOf(Client.RateLimitError)
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' })
    if (sdk === 'openai') expect(error).toMatchObject({ code: undefined })
    expect(Number((error.headers as Headers).get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(watched.attempts).toHaveLength(1)
    expect(await credits(gateway(), withoutCredits)).toMatchObject({ balance: 0, reserved: 0 })
  })

  it('is a RateLimitError with Retry-After at the rate limit', async () => {
    const { key } = await createTenant(gateway(), { user: { rate_limit_per_minute: 1 } })
    await ask({ apiKey: key }, 'the first')
    const error = await failureOf(ask({ apiKey: key }, 'the second'))
    expect(error).toBeInstanceOf(Client.RateLimitError)
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' })
    expect(Number((error.headers as Headers).get('retry-after'))).toBeGreaterThanOrEqual(1)
  })
})

describe('token counting of the Anthropic SDK', () => {
  const counting = (messages: Array<{ role: 'user'; content: string }>) => {
    const client = new newestAnthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })
    return failureOf(client.messages.countTokens({ model: MESSAGES_MODEL, messages }))
  }

  it('raises the errors of the upstream and of the gateway', async () => {
    const error = await counting([{ role: 'user', content: 'script:error-429' }])
    expect(error).toBeInstanceOf(newestAnthropic.RateLimitError)
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' })
    expect(await counting([])).toMatchObject({ status: 400, type: 'invalid_request_error' })
  })
})
