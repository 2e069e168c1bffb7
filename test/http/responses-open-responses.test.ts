import OpenAI from 'openai'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import {
  openResponsesErrorSchema,
  openResponsesItemSchema,
  openResponsesSchema,
} from '../harness/open-responses.ts'
import { openAiClients } from '../harness/sdk-clients.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, seenRequests } from '../harness/upstream.ts'
import { callTool, say } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, listItems, type ToldResponse } from './support/response-calls.ts'
import { CORNER_WAYS, checkedEvents, postResponse, respond, turnsScript } from './support/response-streams.ts'

const HEADER = 'x-headgate-compatibility'
const WEATHER = { type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }
const CODE = { type: 'custom', name: 'run_code' }
/** A request whose answer is cut off. */
const CUT = { input: 'Tell me a very long story of many words.', max_output_tokens: 3 }
const HOSTED = [{ type: 'shell' }, { type: 'web_search' }]

/** Its key has the setting. */
let strict: Tenant
let plain: Tenant

beforeAll(async () => {
  ;[strict, plain] = await Promise.all([
    createTenant(gateway(), { key: { compatibility: 'open_responses' } }),
    createTenant(gateway()),
  ])
})

const get = (path: string, key = strict.key, headers = {}) => ask(key, 'GET', `/v1${path}`, { headers })
const select = (form: string) => ({ headers: { [HEADER]: form } })

/** A response in the form of Open Responses, whatever further members it has. */
function expectOpenResponses(response: object): void {
  const { error } = openResponsesSchema.safeParse(response)
  expect(error, JSON.stringify(response)).toBeUndefined()
  expect(response).not.toHaveProperty('compatibility')
}

describe.each(CORNER_WAYS)(
  'Open Responses by the setting of a key (%s)',
  (_, { upstream, model, stream }) => {
    const call = (body: Json) => respond(strict.key, { model, stream, ...body })

    it('a function call completes, and the next response continues', async () => {
      const script = await turnsScript(upstream, [
        [say('So: '), callTool('get_weather', { city: 'Paris' })],
        [say('Sunny.')],
      ])
      const tools = [...HOSTED, { type: 'headgate:shell' }, WEATHER, CODE]
      const { response } = await call({
        input: script,
        tools,
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [WEATHER] },
      })
      expectOpenResponses(response)
      expect(response).toMatchObject({
        status: 'completed',
        incomplete_details: null,
        tools: [{ ...WEATHER, description: null, strict: false }],
        tool_choice: {
          type: 'allowed_tools',
          mode: 'auto',
          tools: [{ type: 'function', name: 'get_weather' }],
        },
      })
      expect(expectJson(await get(`/responses/${response.id}`))).toEqual(response)
      const output = { type: 'function_call_output', call_id: response.output[1]?.call_id, output: 'sunny' }
      const next = await call({ previous_response_id: response.id, input: [output], tools })
      expect(next.response.output_text).toBe('Sunny.')
    })

    it('a call that the specification does not have is an extension, and is accepted back', async () => {
      const script = await turnsScript(upstream, [
        [callTool('run_code', { input: 'print(1)' })],
        [say('It ran.')],
      ])
      const { response, events } = await call({ input: script, tools: [CODE], store: false })
      expectOpenResponses(response)
      expect(response.output).toMatchObject([{ type: 'headgate:custom_tool_call', input: 'print(1)' }])
      if (stream) {
        const names = events.map(({ event }) => event).filter((event) => event.startsWith('headgate:'))
        expect(new Set(names)).toEqual(
          new Set(['headgate:custom_tool_call_input.delta', 'headgate:custom_tool_call_input.done']),
        )
      }
      const callId = response.output[0]?.call_id
      const output = { type: 'headgate:custom_tool_call_output', call_id: callId, output: '1' }
      const input = [{ role: 'user', content: script }, ...response.output, output]
      const { response: next } = await call({ input, tools: [CODE] })
      expect(next.output_text).toBe('It ran.')
      const sent = await listItems(strict.key, `/v1/responses/${next.id}/input_items?order=asc`)
      expect(sent.data.map(({ type }) => type)).toEqual([
        'message',
        'headgate:custom_tool_call',
        'headgate:custom_tool_call_output',
      ])
      for (const item of sent.data) expect(openResponsesItemSchema.safeParse(item).success).toBe(true)
    })

    it('tools of this service are extensions, and their calls are accepted back', async () => {
      const text = marker()
      const script = await turnsScript(upstream, [
        [callTool('shell', { commands: ['echo hello'], timeout_ms: null, max_output_length: null })],
        [callTool('list_files', { path: '.', recursive: false })],
        [say('Done.')],
      ])
      const { response, events } = await call({ input: `${script} ${text}` })
      expectOpenResponses(response)
      expect(response.tools).toEqual([])
      expect(response.output).toMatchObject([
        { type: 'headgate:shell_call', status: 'completed', output: [{ stdout: 'hello\n' }] },
        { type: 'headgate:service_call', status: 'completed', name: 'list_files' },
        { type: 'message' },
      ])
      if (stream) {
        const names = events.map(({ event }) => event)
        expect(names).toContain('headgate:service_call_arguments.delta')
        expect(names).toContain('headgate:service_call_arguments.done')
      }
      const input = [...response.output, { role: 'user', content: `And now? ${text}` }]
      await call({ input, store: false })
      const last = (await seenRequests(gateway(), text)).at(-1)
      expect(last?.body).toContain('echo hello')
      expect(last?.body).toContain('list_files')
      expect(last?.body).not.toContain('headgate:')
    })

    it('an incomplete response ends with its own event', async () => {
      const { response, events } = await call(CUT)
      expectOpenResponses(response)
      expect(response).toMatchObject({
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      })
      if (stream) expect(events.at(-1)?.event).toBe('response.incomplete')
    })
  },
)

describe('the form of a response', () => {
  const start = async (key: string, address = {}) => (await respond(key, {}, address)).response.id
  const isStrict = async (id: string, key: string, headers = {}) => {
    const response = expectJson<ToldResponse>(await get(`/responses/${id}`, key, headers))
    return openResponsesSchema.safeParse(response).success
  }
  const tools = { tools: HOSTED }

  it('is that of the header, else that of the key, and stays as it was made', async () => {
    const forms = [
      [strict.key, {}, true],
      [strict.key, select('open-responses'), true],
      [strict.key, select('headgate'), false],
      [plain.key, {}, false],
      [plain.key, select('open-responses'), true],
      [plain.key, select(' open-responses '), true],
    ] as const
    for (const [key, address, expected] of forms) {
      const { response } = await respond(key, tools, address)
      expect(openResponsesSchema.safeParse(response).success).toBe(expected)
      // The form of the request that reads it does not matter.
      for (const form of ['headgate', 'open-responses']) {
        expect(await isStrict(response.id, key, { [HEADER]: form })).toBe(expected)
      }
    }
    const answer = await postResponse(plain.key, {}, select('openai'))
    expect(answer.status).toBe(400)
    expect(answer.text).toContain(`${HEADER}: must be headgate or open-responses`)
  })

  it('follows a change of the key from its next call on', async () => {
    const { ask: manage } = administrator(gateway())
    const tenant = await createTenant(gateway())
    const statusOf = async () => {
      const script = await turnsScript('chat', [[callTool('get_weather', {})]])
      return (await respond(tenant.key, { input: script, tools: [WEATHER] })).response.status
    }
    expect(await statusOf()).toBe('incomplete')
    const path = `${tenant.base}/keys/${tenant.keyId}`
    expect(await manage('PUT', path, { compatibility: 'open_responses' })).toMatchObject({
      compatibility: 'open_responses',
    })
    expect(await statusOf()).toBe('completed')
    await manage('PUT', path, { compatibility: 'headgate' })
    expect(await statusOf()).toBe('incomplete')
  })

  it('is that of each response in the items of a conversation', async () => {
    const input = [{ type: 'shell_call', call_id: 'c', action: { commands: ['ls'] }, status: 'completed' }]
    const first = await respond(plain.key, { input: [...input, { role: 'user', content: 'Hello' }] })
    const conversation = first.response.conversation?.id
    const again = [...input, { role: 'user', content: 'And now?' }]
    await respond(plain.key, { input: again, conversation }, select('open-responses'))
    const path = `/v1/conversations/${conversation}/items`
    const { data } = await listItems(plain.key, `${path}?order=asc`)
    expect(data.map(({ type }) => type)).toEqual([
      'shell_call',
      'message',
      'message',
      'headgate:shell_call',
      'message',
      'message',
    ])
    const extension = data[3]?.id ?? ''
    expect(expectJson(await ask(plain.key, 'GET', `${path}/${extension}`))).toEqual(data[3])
  })

  it('is that of one key, not of the other keys of its user', async () => {
    const other = await addKey(gateway(), strict.base, strict.userId)
    const [mine, theirs] = [await start(strict.key), await start(other.key)]
    expect(await isStrict(mine, other.key)).toBe(true)
    expect(await isStrict(theirs, strict.key)).toBe(false)
    const errors = [strict.key, other.key].map(async (key) => jsonOf(await get('/responses/resp_x', key)))
    expect(await Promise.all(errors)).toMatchObject([
      { error: { type: 'not_found', param: null } },
      { error: { type: 'invalid_request_error' } },
    ])
  })
})

describe('a response that runs', () => {
  async function stalled(more: Json) {
    const signal = uniqueName('signal')
    const delta = { role: 'assistant', content: 'First ' }
    const script = await registerScript(gateway(), [
      { sse: [`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`] },
      { waitForSignal: signal },
    ])
    const { response } = await respond(strict.key, { input: script, background: true, ...more })
    return { id: response.id, begun: response, release: () => upstreamControl(gateway()).release(signal) }
  }

  it('is cancelled, and its stream ends', async () => {
    const { id, begun } = await stalled({})
    expectOpenResponses(begun)
    expect(begun).toMatchObject({ status: 'in_progress', background: true })
    const stream = get(`/responses/${id}?stream=true`)
    await vi.waitFor(async () => {
      const { output } = expectJson<ToldResponse>(await get(`/responses/${id}`))
      expect(output).toHaveLength(1)
    })
    const cancelled = expectJson<ToldResponse>(await ask(strict.key, 'POST', `/v1/responses/${id}/cancel`))
    expectOpenResponses(cancelled)
    expect(cancelled).toMatchObject({ status: 'cancelled', incomplete_details: null })
    const events = checkedEvents((await stream).text)
    expect(events.at(-1)).toMatchObject({ event: 'response.incomplete', data: { response: cancelled } })
    expect(expectJson(await get(`/responses/${id}`))).toEqual(cancelled)
  })

  it('fails with an error of the specification', async () => {
    const answer = await postResponse(strict.key, { input: 'script:mid-stream-cut', stream: true })
    const events = checkedEvents(answer.text)
    expect(events.slice(-2).map(({ event }) => event)).toEqual(['error', 'response.failed'])
    expect(events.at(-2)?.data).toMatchObject({ error: { type: 'server_error', param: null } })
  })

  it('is resumed after any number with the same events', async () => {
    const { response, events } = await respond(strict.key, { input: 'Hello', tools: HOSTED, stream: true })
    for (let after = 0; after < events.length; after++) {
      const { text } = await get(`/responses/${response.id}?stream=true&starting_after=${after}`)
      expect(checkedEvents(text, { after })).toEqual(events.slice(after))
    }
  })

  it('is put together by the stream helper of the official client', async () => {
    const client = new OpenAI({ apiKey: strict.key, baseURL: `${gateway().baseUrl}/v1`, maxRetries: 0 })
    const script = await turnsScript('chat', [[say('So: '), callTool('get_weather', { city: 'Paris' })]])
    const stream = client.responses.stream({
      model: 'scripted-chat',
      input: script,
      tools: [{ ...WEATHER, type: 'function', strict: false }],
    })
    expect(await stream.finalResponse()).toMatchObject({
      status: 'completed',
      output: [{}, { name: 'get_weather' }],
    })
    const length = client.responses.stream({ model: 'scripted-chat', ...CUT })
    expect(await length.finalResponse()).toMatchObject({ status: 'incomplete' })
  })
})

describe.each(openAiClients)('the stream helper of %s', (_name, Client) => {
  it('passes over extensions', async () => {
    const client = new Client({ apiKey: strict.key, baseURL: `${gateway().baseUrl}/v1`, maxRetries: 0 })
    const script = await turnsScript('chat', [
      [callTool('list_files', { path: '.', recursive: false }), callTool('shell', { commands: ['echo hi'] })],
      [callTool('run_code', { input: 'print(1)' })],
    ])
    const stream = client.responses.stream({
      ...{ model: 'scripted-chat', input: script },
      tools: [CODE as OpenAI.Responses.CustomTool],
    })
    const types: string[] = []
    stream.on('event', ({ type }) => types.push(type))
    expect((await stream.finalResponse()).output.map(({ type }) => type as string)).toEqual([
      'headgate:service_call',
      'headgate:shell_call',
      'headgate:custom_tool_call',
    ])
    expect(types.filter((type) => type.startsWith('headgate:'))).toEqual([])
  })
})

describe('errors of Open Responses', () => {
  const error = (answer: { text: string }) => {
    const { error: found } = JSON.parse(answer.text)
    expect(openResponsesErrorSchema.safeParse(found).error, answer.text).toBeUndefined()
    return found
  }

  it('have the types and members of the specification', async () => {
    const post = (body: Json, key = strict.key) => postResponse(key, body, select('open-responses'))
    expect(error(await post({ input: 5 }))).toMatchObject({ type: 'invalid_request', code: 'invalid_body' })
    expect(error(await post({ model: 'none' }))).toMatchObject({ code: 'model_not_found' })
    expect(error(await post({}, 'hg_wrong'))).toMatchObject({ type: 'authentication_error', code: null })
    expect(error(await get('/responses/resp_unknown'))).toMatchObject({
      type: 'not_found',
      code: 'not_found',
    })
    const poor = await createTenant(gateway(), { credits: 0, key: { compatibility: 'open_responses' } })
    expect(error(await postResponse(poor.key, {}))).toMatchObject({ type: 'too_many_requests' })
  })

  it('have them where the provider refuses', async () => {
    const script = await registerScript(gateway(), [
      { status: 400, headers: { 'content-type': 'application/json' }, body: '{"error":{"message":"No."}}' },
    ])
    const answer = await postResponse(strict.key, { input: script })
    expect(answer.status).toBe(400)
    expect(error(answer)).toMatchObject({ type: 'invalid_request', param: null })
  })
})
