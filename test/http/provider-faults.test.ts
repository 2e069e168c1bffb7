import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import {
  answered,
  callRouted,
  createRoutedModel,
  type Dialect,
  failed,
  inTurn,
  KINDS,
  type RoutedModel,
  recordedCall,
  routedRequest,
} from '../harness/routed-model.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import type { ScriptStep } from '../harness/upstream.ts'

// Errors of a provider that are no fault of the request, as callers of each surface see them.

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const DIALECTS: Dialect[] = ['chat', 'messages']
const JSON_TYPE = { 'content-type': 'application/json' }

const modelOf = (kinds: readonly Dialect[]): Promise<RoutedModel> =>
  createRoutedModel(
    gateway(),
    kinds.map((kind) => KINDS[kind]),
  )

const shared = new Map<Dialect, Promise<RoutedModel>>()

/** A model of one provider. It is asked whatever happened before, so one model is enough for all faults. */
function sharedModel(kind: Dialect): Promise<RoutedModel> {
  const model = shared.get(kind) ?? modelOf([kind])
  shared.set(kind, model)
  return model
}

/** Calls a model, or one with a provider of the given kind, whose upstreams answer in turn. */
async function answerTo(caller: Dialect, of: Dialect | RoutedModel, answers: ScriptStep[][], more = {}) {
  const model = typeof of === 'string' ? await sharedModel(of) : of
  const script = await inTurn(gateway(), ...answers)
  return callRouted(gateway(), tenant, routedRequest(caller, model, script, more))
}

/** Makes a call. @returns the answer, with the record of the call */
async function call(caller: Dialect, of: Dialect | RoutedModel, answers: ScriptStep[][], more = {}) {
  const model = typeof of === 'string' ? await sharedModel(of) : of
  const answer = await answerTo(caller, model, answers, more)
  return { answer, ...(await recordedCall(gateway(), tenant, model, answer)) }
}

/** Calls a model of one provider on the Responses surface. */
async function callResponses(kind: Dialect, steps: ScriptStep[]): Promise<Answer> {
  const model = await sharedModel(kind)
  const body = JSON.stringify({ model: model.id, input: await inTurn(gateway(), steps), store: false })
  const url = `${gateway().baseUrl}/v1/responses`
  return send(url, { method: 'POST', headers: bearer(tenant.key), body })
}

/** The entry of a model's first provider, from the list of all. */
async function entryOf(model: RoutedModel): Promise<{ id: string }> {
  const { data } = (await administrator(gateway()).ask('GET', '/providers?limit=100')) as {
    data: Array<{ name: string; id: string }>
  }
  return data.find(({ name }) => name === model.providers[0]) as { id: string }
}

const shown = async (model: RoutedModel) =>
  administrator(gateway()).ask('GET', `/providers/${(await entryOf(model)).id}`)

describe.each(DIALECTS)('an error of a provider of %s on messages', (kind) => {
  const page = Buffer.from('<!doctype html><title>502</title>')
  const bodies: Array<[status: number, contentType: string, body: Buffer, error: object]> = [
    [502, 'text/html', page, { type: 'api_error', message: 'The upstream answered with status 502.' }],
    [404, 'text/plain', Buffer.from('nothing'), { type: 'not_found_error', message: /status 404/ }],
    [503, 'application/octet-stream', randomBytes(64), { type: 'api_error', message: /status 503/ }],
    [400, 'application/json', Buffer.from('{"error":{"message":"No."}}'), { type: 'invalid_request_error' }],
    [529, 'text/html', page, { type: 'overloaded_error', message: /status 529/ }],
    [
      503,
      'application/json',
      Buffer.from('{"error":{"message":"Busy.","type":"overloaded_error"}}'),
      {
        type: 'overloaded_error',
        message: 'Busy.',
      },
    ],
    [
      529,
      'application/json',
      Buffer.from('{"type":"error","error":{"type":"overloaded_error"}}'),
      {
        type: 'overloaded_error',
        message: /status 529/,
      },
    ],
  ]
  it.concurrent.each(bodies)('has the envelope of messages: %i %s', async (status, type, body, error) => {
    const steps: ScriptStep[] = [
      { status, headers: { 'content-type': type } },
      { chunkBase64: body.toString('base64') },
      { end: true },
    ]
    for (const stream of status === 502 ? [false, true] : [kind === 'chat']) {
      const answer = await answerTo('messages', kind, [steps], { stream })
      expect(answer.status).toBe(status)
      expect(answer.headers['content-type']).toBe('application/json')
      const {
        type: envelope,
        error: told,
        request_id: requestId,
      } = jsonOf(answer) as {
        type: string
        error: Record<string, string>
        request_id: string
      }
      expect([envelope, requestId]).toEqual(['error', answer.headers['request-id']])
      for (const [name, value] of Object.entries(error)) {
        if (value instanceof RegExp) expect(told[name]).toMatch(value)
        else expect(told[name]).toBe(value)
      }
    }
  })
})

describe('an overload', () => {
  const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded.' } }

  it('of a provider of messages stays as it is on chat completions', async () => {
    const answer = await answerTo('chat', 'messages', [failed(529, JSON.stringify(overloaded))])
    expect(answer.status).toBe(529)
    expect(jsonOf(answer)).toEqual(overloaded)
  })

  it('in a stream of chat completions keeps its type on messages', async () => {
    const [head, frames] = answered('chat', 'the beginning', true) as [ScriptStep, { sse: string[] }]
    const error = 'data: {"error":{"message":"Overloaded.","type":"overloaded_error","code":529}}\n\n'
    const script = [head, { sse: [frames.sse[0] as string, error] }, { end: true } as const]
    const answer = await answerTo('messages', 'chat', [script], { stream: true })
    expect(answer.text).toContain('the beginning')
    expect(answer.text).toContain(`event: error\ndata: ${JSON.stringify(overloaded)}\n\n`)
  })
})

describe.each(DIALECTS)('a provider of %s that refuses the credential of the gateway', (kind) => {
  const refusal = (status: number) => failed(status, '{"error":{"message":"Incorrect API key provided."}}')

  // The statuses mean the same of every provider.
  it.concurrent.each(kind === 'chat' ? [401, 402, 403] : [401])(
    'with %i: marked on chat, a fault of the gateway elsewhere',
    async (status) => {
      const chat = await answerTo('chat', kind, [refusal(status)])
      expect(chat.status).toBe(status)
      expect(chat.text).toBe('{"error":{"message":"Incorrect API key provided."}}')
      expect(chat.headers['x-headgate-error-source']).toBe('provider')

      const messages = await call('messages', kind, [refusal(status)])
      expect(messages.answer.status).toBe(500)
      const message = expect.stringMatching(
        /provider of this model refused the gateway.*Your API key is not the cause/,
      )
      expect(jsonOf(messages.answer)).toMatchObject({ type: 'error', error: { type: 'api_error', message } })
      expect(messages.answer.headers['x-should-retry']).toBe('false')
      expect(messages.attempts).toEqual([`0 ${status}`])
      expect(messages.record).toMatchObject({ status: 500, errorCode: 'provider_refused_gateway', cost: 0 })

      const responses = await callResponses(kind, refusal(status))
      expect(responses.text).toMatch(/provider of this model refused the gateway/)
      expect(responses.text).not.toContain('Incorrect API key')
    },
  )

  it('leaves the call to the next route', async () => {
    const { answer, attempts } = await call('messages', await modelOf([kind, 'messages']), [
      refusal(401),
      ...(kind === 'chat' ? [refusal(401)] : []),
      answered('messages', 'from the second', false),
    ])
    // The route of the caller's own protocol comes first.
    if (kind === 'messages') expect([answer.status, attempts]).toEqual([200, ['0 401', '1 200']])
    else expect([answer.status, attempts]).toEqual([500, ['1 401', '0 401']])
  })

  it('is not taken for one that refuses flagged content', async () => {
    const flagged = failed(403, '{"error":{"code":403,"message":"Your input was flagged: violence."}}')
    const model = await modelOf([kind])
    const answer = await answerTo('messages', model, [flagged])
    expect(answer.status).toBe(403)
    expect(jsonOf(answer)).toMatchObject({
      error: { type: 'permission_error', message: expect.stringMatching(/flagged/) },
    })
    expect(await shown(model)).toMatchObject({ health: 'ok' })
  })

  it('is tried last by the next calls until its entry changes', async () => {
    const { ask } = administrator(gateway())
    const model = await modelOf([kind, kind])
    const good = answered(kind, 'served', false)
    const attemptsOf = async (...answers: ScriptStep[][]) => {
      const script = await inTurn(gateway(), ...answers)
      const answer = await callRouted(gateway(), tenant, routedRequest(kind, model, script))
      expect(answer.status).toBe(200)
      return (await recordedCall(gateway(), tenant, model, answer)).attempts
    }
    const flagged = failed(403, '{"error":{"code":403,"message":"Your input was flagged: violence."}}')
    expect(await attemptsOf(flagged, good)).toEqual(['0 403', '1 200'])
    expect(await attemptsOf(refusal(401), good)).toEqual(['0 401', '1 200'])
    expect(await attemptsOf(good)).toEqual(['1 200'])
    const { id } = await entryOf(model)
    await ask('PUT', `/providers/${id}`, { credential: 'renewed' })
    expect(await attemptsOf(refusal(403), good)).toEqual(['0 403', '1 200'])
    // It serves a call when the other one fails, and is then first again.
    expect(await attemptsOf(failed(500), good)).toEqual(['1 500', '0 200'])
    expect(await attemptsOf(good)).toEqual(['0 200'])
  })

  it('is shown by the management API until it serves a call', async () => {
    const good = answered(kind, 'well again', false)
    const model = await modelOf([kind])
    await answerTo(kind, model, [refusal(401)])
    const times = { timeout: 5_000, interval: 50 }
    await vi.waitFor(
      async () => expect(await shown(model)).toMatchObject({ health: 'refuses_gateway' }),
      times,
    )
    expect(await shown(model)).toMatchObject({
      refused_status: 401,
      refused_at: expect.stringMatching(/^20..-/),
    })
    const script = await inTurn(gateway(), good)
    const answer = await callRouted(gateway(), tenant, routedRequest(kind, model, script))
    expect(answer.status).toBe(200)
    await vi.waitFor(async () => expect(await shown(model)).toMatchObject({ health: 'ok' }), times)
  })
})

describe.each(DIALECTS)('an error under status 200 of a provider of %s', (kind) => {
  const under200: ScriptStep[] = [
    { headers: JSON_TYPE, body: '{"error":{"message":"Provider returned error","code":502},"id":"gen-1"}' },
  ]

  it('is an error on every surface, and charges nothing', async () => {
    // Every form of it: errors-under-200.test.ts.
    for (const caller of DIALECTS) {
      const { answer, attempts, record } = await call(caller, kind, [under200], { stream: caller === 'chat' })
      expect(answer.status).toBe(502)
      expect(jsonOf(answer)).toMatchObject({ error: { message: 'Provider returned error' } })
      expect(attempts).toEqual(['0 200 error_as_answer'])
      expect(record).toMatchObject({ errorCode: 'upstream_error', cost: 0 })
    }
    const { text } = await callResponses(kind, under200)
    expect(text).toContain('Provider returned error')
    expect(text).not.toContain('"status":"completed"')
  })

  it('leaves the call to the next route', async () => {
    const good = answered(kind, 'from the second', false)
    const { answer, attempts } = await call(kind, await modelOf([kind, kind]), [under200, good])
    expect([answer.status, attempts]).toEqual([200, ['0 200 error_as_answer', '1 200']])
  })

  it('is no error where an answer stands beside it', async () => {
    const { body } = answered(kind, 'complete', false)[0] as { body: string }
    const beside = [{ headers: JSON_TYPE, body: body.replace('{', '{"error":null,') }]
    const answer = await answerTo(kind, kind, [beside])
    expect(answer.status).toBe(200)
  })
})
