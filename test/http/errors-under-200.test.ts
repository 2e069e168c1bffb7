import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import {
  answered,
  createRoutedModel,
  type Dialect,
  inTurn,
  KINDS,
  type RoutedModel,
  recordedCall,
  routedRequest,
} from '../harness/routed-model.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import type { ScriptStep } from '../harness/upstream.ts'

// An error that a provider sends with status 200 before it has generated anything: as the first event of a stream, or in
// place of a whole answer. Callers get the status that the provider's error type stands for.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

type Caller = Dialect | 'responses'
const CALLERS: Caller[] = ['chat', 'messages', 'responses']
const WAYS = CALLERS.flatMap((caller) =>
  (['chat', 'messages'] as const).flatMap((upstream) =>
    [true, false].map((stream) => [caller, upstream, stream ? 'streamed' : 'whole'] as const),
  ),
)
/** Each caller with each provider, one protocol streamed and one whole: for what is the same for every form. */
const CORNERS = WAYS.filter(([, upstream, way]) => (way === 'streamed') === (upstream === 'chat'))

const models = new Map<string, Promise<RoutedModel>>()

/** A model with these providers. None of these errors is remembered of a route, so all calls can share it. */
function modelOf(upstreams: Dialect[]): Promise<RoutedModel> {
  const name = upstreams.join()
  const model =
    models.get(name) ??
    createRoutedModel(
      gateway(),
      upstreams.map((upstream) => KINDS[upstream]),
    )
  models.set(name, model)
  return model
}

type ErrorMembers = Record<string, unknown>

function errorSteps(upstream: Dialect, error: ErrorMembers, stream: boolean): ScriptStep[] {
  const body = upstream === 'messages' ? { type: 'error', error } : { error }
  if (!stream) return [{ headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }]
  const event = upstream === 'messages' ? 'event: error\n' : ''
  const pings = upstream === 'messages' ? 'event: ping\ndata: {"type":"ping"}\n\n' : ': waiting\n\n'
  return [
    { headers: { 'content-type': 'text/event-stream' } },
    { sse: [pings, `${event}data: ${JSON.stringify(body)}\n\n`] },
    { end: true },
  ]
}

async function call(caller: Caller, upstreams: Dialect[], answers: ScriptStep[][], stream: boolean) {
  const model = await modelOf(upstreams)
  const script = await inTurn(gateway(), ...answers)
  const { path, body } =
    caller === 'responses'
      ? {
          path: '/v1/responses',
          body: JSON.stringify({ model: model.id, input: script, stream, store: false }),
        }
      : routedRequest(caller, model, script, { stream })
  const headers = bearer(tenant.key)
  const answer = await send(gateway().baseUrl + path, { method: 'POST', headers, body })
  return { answer, ...(await recordedCall(gateway(), tenant, model, answer)) }
}

/** Error types of both protocols, and the status and the type of messages that each stands for. */
const ERRORS: Array<[error: ErrorMembers, status: number, messagesType: string]> = [
  [{ type: 'overloaded_error' }, 529, 'overloaded_error'],
  [{ type: 'rate_limit_error' }, 429, 'rate_limit_error'],
  [{ type: 'api_error' }, 500, 'api_error'],
  [{ type: 'invalid_request_error' }, 400, 'invalid_request_error'],
  [{ type: 'timeout_error' }, 504, 'api_error'],
]
const CHAT_ERRORS: typeof ERRORS = [
  [{ type: 'server_error', code: 'server_is_overloaded' }, 529, 'overloaded_error'],
  [{ type: 'requests', code: 'rate_limit_exceeded' }, 429, 'rate_limit_error'],
  [{ type: 'insufficient_quota', code: 'insufficient_quota' }, 429, 'rate_limit_error'],
  [{ code: 503 }, 503, 'api_error'],
  [{ type: 'server_error' }, 500, 'api_error'],
]

/**
 * The statuses of error types are one table for every way: callers of messages, whose envelope has a type for each,
 * have all of it, streamed. The other ways have one error of each form of envelope: with and without `Retry-After`, and
 * one of OpenAI's names.
 */
function errorsFor(caller: Caller, upstream: Dialect, stream: boolean): typeof ERRORS {
  const all = [...ERRORS, ...(upstream === 'chat' ? CHAT_ERRORS : [])]
  if (stream && caller === 'messages') return all
  return all.filter(({ 0: { type } }) => SOME_TYPES.has(String(type)))
}
const SOME_TYPES = new Set(['overloaded_error', 'rate_limit_error', 'insufficient_quota'])

describe.each(WAYS)('on %s, of a provider of %s, %s', (caller, upstream, way) => {
  const stream = way === 'streamed'

  it.concurrent.each(errorsFor(caller, upstream, stream))(
    '%j is status %i',
    async (members, status, messagesType) => {
      const error = { ...members, message: 'Not now.' }
      const { answer, attempts, record } = await call(
        caller,
        [upstream],
        [errorSteps(upstream, error, stream)],
        stream,
      )
      expect(answer.status, answer.text).toBe(status)
      expect(answer.headers['x-headgate-error-source']).toBe('provider')
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
      expect(answer.headers['retry-after'] !== undefined).toBe(status === 429)
      expectEnvelope(caller, upstream, answer, { error, messagesType })
      expect(attempts).toEqual([expect.stringMatching(/^0 200 (stream_error|error_as_answer)$/)])
      expect(record).toMatchObject({ status, cost: 0, usage: null })
    },
  )
})

describe.each(CORNERS)('on %s, of a provider of %s, %s, an overload', (caller, upstream, way) => {
  it('leaves the call to the next route', async () => {
    const stream = way === 'streamed'
    // Responses are always streamed by the provider.
    const good = answered(upstream, 'from the second', stream || caller === 'responses')
    const overloaded = errorSteps(upstream, { type: 'overloaded_error', message: 'x' }, stream)
    const { answer, attempts } = await call(caller, [upstream, upstream], [overloaded, good], stream)
    expect(answer.text).toContain('from the second')
    expect([answer.status, attempts[1]]).toEqual([200, '1 200'])
  })
})

function expectEnvelope(
  caller: Caller,
  upstream: Dialect,
  answer: Answer,
  { error, messagesType }: { error: ErrorMembers; messagesType: string },
): void {
  const { status } = answer
  const isOurs = caller === 'responses' || (caller === 'messages' && upstream === 'chat')
  const message =
    isOurs && status === 429 ? "A limit of the model's provider is reached: Not now." : 'Not now.'
  if (caller === 'chat') expect(jsonOf(answer)).toEqual({ error })
  else if (caller === 'responses') {
    expect(jsonOf(answer)).toEqual({
      error: { message, type: expect.any(String), code: expect.any(String) },
    })
  } else if (upstream === 'messages') expect(jsonOf(answer)).toEqual({ type: 'error', error })
  else {
    const request_id = answer.headers['request-id']
    expect(jsonOf(answer)).toEqual({ type: 'error', error: { type: messagesType, message }, request_id })
  }
}

describe('an error without a known type', () => {
  it.each(CORNERS)('on %s, of a provider of %s, %s, is 502', async (caller, upstream, way) => {
    const stream = way === 'streamed'
    const error = { type: 'something_new', message: 'Not now.' }
    const { answer } = await call(caller, [upstream], [errorSteps(upstream, error, stream)], stream)
    expect([answer.status, answer.text]).toEqual([502, expect.stringContaining('Not now.')])
  })
})

it('a credential that the provider repeats in such an error is cut out', async () => {
  const error = { type: 'invalid_request_error', message: 'Wrong: scripted-upstream.' }
  for (const caller of CALLERS) {
    const steps = errorSteps('chat', error, true)
    const script = await inTurn(gateway(), steps)
    const body = {
      model: 'scripted-chat',
      stream: true,
      max_tokens: 10,
      messages: [{ role: 'user', content: script }],
    }
    const path = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' }[
      caller
    ]
    const sent = caller === 'responses' ? { model: body.model, stream: true, input: script } : body
    const headers = bearer(tenant.key)
    const answer = await send(gateway().baseUrl + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(sent),
    })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('[redacted]')])
    expect(answer.text).not.toContain('scripted-upstream')
  }
})
