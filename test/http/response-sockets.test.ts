import { beforeAll, describe, expect, it } from 'vitest'
import { checkResponseStream } from '../harness/conformance.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import {
  asStreamEvents,
  openResponseSocket,
  type ResponseSocket,
  type SocketEvent,
} from '../harness/response-socket.ts'
import { createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest, seenRequests } from '../harness/upstream.ts'
import { framesOf, say } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, listItems } from './support/response-calls.ts'
import { checkedEvents, turnsScript } from './support/response-streams.ts'

const MODEL = 'scripted-chat'
let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const connect = (headers: Record<string, string> = {}) => openResponseSocket(gateway(), tenant.key, headers)

/** The response at the end of a turn. @throws when the turn failed. */
function responseOf(events: readonly SocketEvent[]) {
  const last = events.at(-1)
  if (last?.type !== 'response.completed' || !last.response) throw new Error(JSON.stringify(last))
  return last.response
}

const errorOf = (events: readonly SocketEvent[]) => {
  const [first] = events
  return { status: first?.status, code: first?.error?.code, param: first?.error?.param }
}
const NOT_FOUND = { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' }

const messagesOf = async (text: string): Promise<Json[]> =>
  (JSON.parse((await seenRequest(gateway(), text)).body) as { messages: Json[] }).messages

/** A script that says a word, and the rest when the test lets it. */
async function waitingScript() {
  const signal = uniqueName('signal')
  const [begin, ...rest] = framesOf('chat', [say('Hello '), say('there')]) as [string, ...string[]]
  const script = await registerScript(gateway(), [{ sse: [begin] }, { waitForSignal: signal }, { sse: rest }])
  return { script, release: () => upstreamControl(gateway()).release(signal) }
}

const untilBegun = async (socket: ResponseSocket): Promise<SocketEvent> => {
  for (;;) {
    const event = await socket.next()
    if (event.type === 'response.created') return event
  }
}

async function restOf(socket: ResponseSocket): Promise<SocketEvent[]> {
  const events: SocketEvent[] = []
  while (events.at(-1)?.type !== 'response.completed') events.push(await socket.next())
  return events
}

describe.concurrent('a response on a WebSocket', () => {
  it('has the events of a stream as messages, one response after the other', async () => {
    const socket = await connect()
    for (const input of ['first', 'second']) {
      const events = await socket.create({ model: MODEL, input })
      expect(checkResponseStream(asStreamEvents(events))).toEqual([])
      expect(responseOf(events)).toMatchObject({ status: 'completed', store: true })
    }
    socket.close()
  })

  it('is the same response over HTTP', async () => {
    const socket = await connect()
    const response = responseOf(await socket.create({ model: MODEL, input: 'Hello' }))
    const fetched = expectJson(await ask(tenant.key, 'GET', `/v1/responses/${response.id}`))
    expect(fetched).toEqual(response)
    socket.close()
  })

  it('ignores members that only HTTP uses', async () => {
    const socket = await connect()
    const script = await turnsScript('chat', [[say('Hi')]])
    const more = { stream: false, stream_options: { include_obfuscation: false }, background: false }
    const events = await socket.create({ model: MODEL, input: script, ...more })
    expect(responseOf(events)).toMatchObject({ output_text: 'Hi' })
    const seen = JSON.parse((await seenRequest(gateway(), script)).body) as Json
    expect(seen.type).toBeUndefined()
    socket.close()
  })

  it('ends a call of a function as Open Responses does, if the upgrade requests it', async () => {
    const request = {
      model: MODEL,
      input: 'How is the weather?',
      tools: [{ type: 'function', name: 'get_weather', parameters: { type: 'object' }, strict: false }],
      tool_choice: 'required',
    }
    for (const [headers, status] of [
      [{}, 'incomplete'],
      [{ 'x-headgate-compatibility': 'open-responses' }, 'completed'],
    ] as const) {
      const socket = await connect(headers)
      expect(responseOf(await socket.create(request)).status).toBe(status)
      const limited = await socket.create({ ...request, tool_choice: 'none', max_output_tokens: 1 })
      expect(limited.at(-1)?.type).toBe(status === 'completed' ? 'response.incomplete' : 'response.completed')
      socket.close()
    }
  })

  it('is created from a page of an allowed origin as well', async () => {
    const socket = await connect({ origin: 'https://chat.example' })
    responseOf(await socket.create({ model: MODEL, input: 'Hello' }))
    socket.close()
  })

  it('continues when its client leaves, and is resumed over HTTP', async () => {
    const { script, release } = await waitingScript()
    const socket = await connect()
    socket.send({ type: 'response.create', model: MODEL, input: script })
    const { response } = await untilBegun(socket)
    socket.close()
    await socket.closed
    await release()
    const answer = await ask(tenant.key, 'GET', `/v1/responses/${response?.id}?stream=true&starting_after=2`)
    const events = checkedEvents(answer.text, { after: 2 })
    expect(events.at(-1)?.data.response).toMatchObject({ status: 'completed', output_text: 'Hello there' })
    // A new connection continues it.
    const again = await connect()
    const next = await again.create({ model: MODEL, input: 'Go on', previous_response_id: response?.id })
    expect(responseOf(next)).toMatchObject({ previous_response_id: response?.id })
    again.close()
  })
})

describe.concurrent('the continuation of a response that is not stored', () => {
  it('has the whole conversation, on its own connection', async () => {
    const socket = await connect()
    const texts = [marker(), marker(), marker()]
    let previous: string | undefined
    for (const input of texts) {
      const events = await socket.create({
        model: MODEL,
        input,
        store: false,
        previous_response_id: previous,
      })
      const response = responseOf(events)
      expect(response.previous_response_id).toBe(previous ?? null)
      previous = response.id
    }
    const messages = await messagesOf(texts[2] ?? '')
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
    for (const [index, text] of texts.entries()) {
      expect(JSON.stringify(messages[index * 2]?.content)).toContain(text)
    }
    socket.close()
  })

  it('may name the items that it has anyway', async () => {
    const socket = await connect()
    const first = responseOf(await socket.create({ model: MODEL, input: 'Hello', store: false }))
    const [{ id = '' } = {}] = first.output as Array<{ id?: string }>
    const text = marker()
    const input = [
      { type: 'item_reference', id },
      { role: 'user', content: text },
    ]
    responseOf(await socket.create({ model: MODEL, input, store: false, previous_response_id: first.id }))
    expect(await messagesOf(text)).toHaveLength(3)
    socket.close()
  })

  it('is not found on another connection, which stays open', async () => {
    const first = await connect()
    const { id } = responseOf(await first.create({ model: MODEL, input: 'Hello', store: false }))
    first.close()
    const second = await connect()
    const request = { model: MODEL, input: 'Go on', store: false }
    expect(errorOf(await second.create({ ...request, previous_response_id: id }))).toEqual(NOT_FOUND)
    responseOf(await second.create(request))
    second.close()
  })

  it('is not found once one of its continuations has failed', async () => {
    const socket = await connect()
    const { id } = responseOf(await socket.create({ model: MODEL, input: 'Hello', store: false }))
    const continued = { model: MODEL, store: false, previous_response_id: id }
    const orphan = [{ type: 'function_call_output', call_id: 'call_missing', output: 'x' }]
    expect(errorOf(await socket.create({ ...continued, input: orphan }))).toMatchObject({ status: 400 })
    expect(errorOf(await socket.create({ ...continued, input: 'Go on' }))).toEqual(NOT_FOUND)
    socket.close()
  })

  it('is found after a message that was refused for another reason', async () => {
    const socket = await connect()
    const { id } = responseOf(await socket.create({ model: MODEL, input: 'Hello', store: false }))
    expect(errorOf(await socket.create({ model: 'no-such-model', input: 'x' }))).toMatchObject({
      status: 400,
    })
    socket.send('{')
    expect((await socket.next()).type).toBe('error')
    responseOf(await socket.create({ model: MODEL, input: 'On', store: false, previous_response_id: id }))
    socket.close()
  })

  it('begins with what a stored conversation has', async () => {
    const socket = await connect()
    const texts = [marker(), marker(), marker()]
    const stored = responseOf(await socket.create({ model: MODEL, input: texts[0] }))
    const open = { model: MODEL, store: false }
    const second = responseOf(
      await socket.create({ ...open, input: texts[1], previous_response_id: stored.id }),
    )
    responseOf(await socket.create({ ...open, input: texts[2], previous_response_id: second.id }))
    expect(await messagesOf(texts[2] ?? '')).toHaveLength(5)
    socket.close()
  })

  it('can be stored, with everything that came before', async () => {
    const socket = await connect()
    const texts = [marker(), marker(), marker(), marker()]
    const first = responseOf(await socket.create({ model: MODEL, input: texts[0] }))
    const open = { model: MODEL, store: false, previous_response_id: first.id }
    const second = responseOf(await socket.create({ ...open, input: texts[1] }))
    const third = responseOf(
      await socket.create({ model: MODEL, input: texts[2], previous_response_id: second.id }),
    )
    socket.close()
    const { data } = await listItems(tenant.key, `/v1/responses/${third.id}/input_items?order=asc&limit=100`)
    expect(data).toHaveLength(5)
    const http = await ask(tenant.key, 'POST', '/v1/responses', {
      body: JSON.stringify({ model: MODEL, input: texts[3], previous_response_id: third.id }),
    })
    expect(http.status).toBe(200)
    expect(await messagesOf(texts[3] ?? '')).toHaveLength(7)
  })

  it('has items of any size', async () => {
    const socket = await connect()
    const image = `data:image/png;base64,${'A'.repeat(3_000_000)}`
    const content = [
      { type: 'input_text', text: 'What is it?' },
      { type: 'input_image', image_url: image },
    ]
    let previous: string | undefined
    const last = marker()
    for (const input of [[{ role: 'user', content }], 'And?', last]) {
      const request = { model: MODEL, input, store: false, previous_response_id: previous }
      previous = responseOf(await socket.create(request)).id
    }
    // The text of the last request is after the first 64 KB, in which the upstream searches.
    socket.close()
  })

  it('begins with input whose answer was left out', async () => {
    const socket = await connect()
    const [before, after] = [marker(), marker()]
    for (const store of [false, true]) {
      const warm = await socket.create({ model: MODEL, input: `${before}${store}`, store, generate: false })
      const response = responseOf(warm)
      expect(response).toMatchObject({ output: [], usage: { total_tokens: 0 } })
      expect(await seenRequests(gateway(), `${before}${store}`)).toEqual([])
      const text = `${after}${store}`
      responseOf(await socket.create({ model: MODEL, input: text, store, previous_response_id: response.id }))
      expect(await messagesOf(text)).toHaveLength(2)
    }
    socket.close()
  })
})

it('takes a message of 32 MiB, the most that the platform allows', async () => {
  const socket = await connect()
  const request = { model: MODEL, store: false, generate: false, input: '' }
  const length = 32 * 1024 * 1024 - JSON.stringify({ type: 'response.create', ...request }).length
  responseOf(await socket.create({ ...request, input: 'x'.repeat(length) }))
  socket.close()
})

describe.concurrent('a message that cannot be taken', () => {
  it.each<[string, unknown, object]>([
    ['no JSON', '{', { status: 400, code: 'invalid_body' }],
    ['no object', '[]', { status: 400, code: 'invalid_body' }],
    ['no type', { model: MODEL, input: 'x' }, { status: 400, code: 'invalid_body' }],
    ['another type', { type: 'response.steer', input: 'x' }, { status: 400, code: 'invalid_body' }],
    ['bytes', new Uint8Array([123, 125]), { status: 400, code: 'invalid_body' }],
    ['no input', { type: 'response.create', model: MODEL }, { status: 400, code: 'invalid_body' }],
    [
      'background',
      { type: 'response.create', model: MODEL, input: 'x', background: true },
      { status: 400, code: 'invalid_body' },
    ],
    [
      'a stream of its own',
      { type: 'response.create', model: MODEL, input: 'x', stream_id: 'a' },
      { status: 400, code: 'invalid_body' },
    ],
    [
      'an unknown model',
      { type: 'response.create', model: 'no-such-model', input: 'x' },
      { status: 400, code: 'model_not_found' },
    ],
    [
      'an unknown previous response',
      { type: 'response.create', model: MODEL, input: 'x', previous_response_id: 'resp_missing' },
      NOT_FOUND,
    ],
  ])('is answered with an error: %s', async (_, message, expected) => {
    const socket = await connect()
    socket.send(message as string)
    const event = await socket.next()
    expect(event).toMatchObject({
      type: 'error',
      headers: { 'x-request-id': expect.stringMatching(/^req_/) },
    })
    expect(errorOf([event])).toMatchObject(expected)
    // The connection stays.
    responseOf(await socket.create({ model: MODEL, input: 'Hello' }))
    socket.close()
  })

  it('is one that arrives while a response is created, which continues', async () => {
    const { script, release } = await waitingScript()
    const socket = await connect()
    socket.send({ type: 'response.create', model: MODEL, input: script })
    await untilBegun(socket)
    socket.send({ type: 'response.create', model: MODEL, input: 'too early' })
    let event = await socket.next()
    while (event.type !== 'error') event = await socket.next()
    expect(errorOf([event])).toMatchObject({ status: 400, code: 'response_already_in_flight' })
    await release()
    expect(responseOf(await restOf(socket))).toMatchObject({ output_text: 'Hello there' })
    responseOf(await socket.create({ model: MODEL, input: 'Hello' }))
    socket.close()
  })

  it('is a refusal of the provider with its status', async () => {
    const script = await registerScript(gateway(), [
      { status: 400, body: JSON.stringify({ error: { message: 'No.', code: 'bad_thing' } }) },
    ])
    const socket = await connect()
    const [event] = await socket.create({ model: MODEL, input: script })
    expect(event).toMatchObject({
      status: 400,
      error: { code: 'bad_thing', message: expect.stringContaining('No.') },
    })
    socket.close()
  })

  it('breaks off in the middle with a status as well', async () => {
    const [begin = ''] = framesOf('chat', [say('Hello ')], undefined, false)
    const script = await registerScript(gateway(), [{ sse: [begin] }, { destroy: true }])
    const socket = await connect()
    const events = await socket.create({ model: MODEL, input: script, store: false })
    expect(events.at(-1)).toMatchObject({ type: 'response.failed' })
    expect(events.at(-2)).toMatchObject({ type: 'error', status: 500, error: { code: 'stream_error' } })
    socket.close()
  })
})
