import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createRoutedModel, PRICES } from '../harness/routed-model.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import { say } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, listItems } from './support/response-calls.ts'
import {
  bodyOf,
  CORNER_WAYS,
  HOSTED_TOOLS,
  RESPONSE_WAYS,
  respond,
  turnsScript,
} from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'number' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
}
const FORMAT = { type: 'json_schema', name: 'weather', schema: SCHEMA, strict: true }

describe.each(CORNER_WAYS)('settings (%s)', (_, { upstream, model, stream }) => {
  const call = async (body: Json) => (await respond(tenant.key, { model, stream, ...body })).response

  it('are in the response as they were requested', async () => {
    const settings = {
      instructions: 'Be brief.',
      metadata: { project: 'é', nested: { a: [1, null] } },
      temperature: 0.5,
      max_output_tokens: 500,
      max_tool_calls: 3,
      parallel_tool_calls: false,
      truncation: 'auto',
      user: 'a user',
      safety_identifier: 'a person',
      prompt_cache_key: 'a key',
      background: false,
      store: true,
      unknown_member: { kept: false },
    }
    const response = await call({ input: 'Hello', ...settings })
    const { unknown_member: _unknown, ...told } = settings
    expect(response).toMatchObject(told)
    expect(expectJson(await ask(tenant.key, 'GET', `/v1/responses/${response.id}`))).toEqual(response)
  })

  it('have the defaults of the official service', async () => {
    expect(await call({ input: 'Hello', max_output_tokens: null })).toMatchObject({
      status: 'completed',
      background: false,
      error: null,
      incomplete_details: null,
      instructions: null,
      max_output_tokens: null,
      max_tool_calls: null,
      metadata: {},
      parallel_tool_calls: true,
      previous_response_id: null,
      reasoning: null,
      store: true,
      temperature: 1,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: HOSTED_TOOLS,
      top_p: 1,
      truncation: 'disabled',
    })
  })

  it('reach the model in the words of its protocol', async () => {
    const text = marker()
    const key = marker()
    await call({
      input: text,
      temperature: 0.25,
      max_output_tokens: 321,
      prompt_cache_key: key,
      safety_identifier: 'a person',
      metadata: { never: 'told' },
      stream,
    })
    const body = bodyOf(await seenRequest(gateway(), text))
    expect(body).toMatchObject({ stream: true, temperature: 0.25 })
    expect(body.max_completion_tokens ?? body.max_tokens).toBe(321)
    // The vendor's own word, which other servers refuse.
    expect(JSON.stringify(body)).not.toContain(key)
    for (const own of ['never', 'previous_response_id', 'store', 'truncation', 'conversation']) {
      expect(Object.keys(body)).not.toContain(own)
      expect(JSON.stringify(body)).not.toContain('never')
    }
  })

  it('max_output_tokens ends the answer incomplete', async () => {
    const plain = await call({ input: 'Tell me a very long story of many words.', max_output_tokens: 3 })
    expect(plain).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      completed_at: null,
    })
    expect(plain.output.at(-1)).toMatchObject({ type: 'message', status: 'incomplete' })
  })

  it('text.format makes the answer JSON that fits', async () => {
    const response = await call({ input: 'The weather in Paris?', text: { format: FORMAT } })
    expect(response).toMatchObject({ status: 'completed', text: { format: FORMAT } })
    const said = JSON.parse(String(response.output_text))
    expect(said).toEqual({ city: expect.any(String), degrees: expect.any(Number) })
    const asked = { text: { format: { type: 'json_object' } } }
    const loose = await call({ input: upstream === 'chat' ? 'Some JSON.' : 'script:fenced-json', ...asked })
    expect(JSON.parse(String(loose.output_text))).toEqual(expect.any(Object))
  })

  it('truncation drops what is oldest, where the caller allows it', async () => {
    const kind = upstream === 'chat' ? 'openai-compatible' : 'anthropic'
    const small = await createRoutedModel(gateway(), [kind])
    const texts = Array.from({ length: 4 }, () => marker())
    const input = texts.flatMap((text) => [
      { role: 'user', content: `${text} ${'word '.repeat(30_000)}` },
      { role: 'assistant', content: 'Yes.' },
    ])
    const instructions = marker()
    const body = { model: small.id, instructions, input: [...input, { role: 'user', content: 'And?' }] }
    const response = await call({ ...body, truncation: 'auto' })
    expect(response).toMatchObject({ status: 'completed', truncation: 'auto' })
    const kept = await seenRequest(gateway(), instructions)
    // Two of the four texts fit, each of about 37,000 estimated tokens.
    expect(kept.bodyBytes).toBeGreaterThan(2 * 150_000)
    expect(kept.bodyBytes).toBeLessThan(3 * 150_000)
    expect(kept.body).toContain(texts[2])
    const list = await listItems(tenant.key, `/v1/responses/${response.id}/input_items?limit=100`)
    expect(list.data).toHaveLength(9)
  })
})

const KNOWS_SCHEMAS = new Set(['scripted-chat', 'scripted-messages'])

/** Models by what they know of JSON: a format, or neither that nor a mode. */
it.each(['scripted-chat', 'scripted-chat-plain', 'scripted-messages', 'scripted-messages-thinking'])(
  '%s answers in the JSON that is asked for',
  async (model) => {
    for (const stream of [true, false]) {
      const input = KNOWS_SCHEMAS.has(model) ? 'The weather in Paris?' : 'script:fenced-json'
      const body = { model, stream, input, text: { format: FORMAT } }
      const { response } = await respond(tenant.key, { ...body, max_output_tokens: 2_000 })
      expect(response.status, JSON.stringify(response.error)).toBe('completed')
      const said = JSON.parse(String(response.output_text))
      // The local model cannot be asked for anything in words: of the fence around its JSON nothing is left.
      const [text, number] = KNOWS_SCHEMAS.has(model) ? ['city', 'degrees'] : ['answer', 'count']
      expect(said).toMatchObject({ [text]: expect.any(String), [number]: expect.any(Number) })
    }
  },
)

/** What each effort becomes, by the model. */
it.each(['minimal', 'low', 'medium', 'high'])(
  'reasoning effort %s reaches models that think',
  async (effort) => {
    for (const model of [
      'scripted-chat-reasoning',
      'scripted-messages-thinking',
      'scripted-messages-adaptive',
    ]) {
      const text = marker()
      const body = { model, input: text, reasoning: { effort }, max_output_tokens: 16_000 }
      const { response } = await respond(tenant.key, { ...body, stream: true })
      expect(response.status, JSON.stringify(response.error)).toBe('completed')
      expect(response.reasoning).toEqual({ effort, summary: null })
      const seen = bodyOf(await seenRequest(gateway(), text))
      const told = seen.reasoning_effort ?? seen.thinking ?? seen.output_config
      expect(told, `${model}: ${JSON.stringify({ ...seen, messages: [] })}`).toBeDefined()
    }
  },
)

it('usage has reasoning tokens and cached tokens', async () => {
  for (const [, way] of RESPONSE_WAYS) {
    const { response } = await respond(tenant.key, { ...way, input: 'script:usage-full' })
    expect(response.usage).toEqual({
      input_tokens: 550,
      input_tokens_details: { cached_tokens: 400, cache_write_tokens: 50 },
      output_tokens: 50,
      output_tokens_details: { reasoning_tokens: 15 },
      total_tokens: 600,
    })
  }
})

it('a client that asks for Open Responses gets calls as completed responses', async () => {
  const tool = { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }
  const headers = { 'x-headgate-compatibility': 'open-responses' }
  for (const [, { upstream, ...way }] of RESPONSE_WAYS) {
    const script = await turnsScript(upstream, [[{ kind: 'call', name: 'f', json: '{}' }], [say('Done.')]])
    const body = { ...way, input: script, tools: [tool] }
    const { response } = await respond(tenant.key, body, { headers })
    expect(response).toMatchObject({ status: 'completed', incomplete_details: null })
    expect(response.completed_at).toEqual(expect.any(Number))
    const output = { type: 'function_call_output', call_id: response.output[0]?.call_id, output: '1' }
    const next = { ...way, previous_response_id: response.id, input: [output], tools: [tool] }
    expect((await respond(tenant.key, next, { headers })).response.output_text).toBe('Done.')
  }
})

it('prompt_cache_key and safety_identifier reach models of OpenAI', async () => {
  const { ask: manage } = administrator(gateway())
  const base_url = `${gateway().standIns.modelUpstream}/v1`
  const provider = await manage('POST', '/providers', {
    name: uniqueName('openai'),
    kind: 'openai-compatible',
    base_url,
    credential: 'a credential',
  })
  const id = uniqueName('gpt')
  const routes = [{ provider_id: provider.id, upstream_model: 'gpt-4.1-mini' }]
  const limits = { context_window: 100_000, max_output_tokens: 1_000 }
  await manage('PUT', `/models/${id}`, { owned_by: 'test', ...limits, prices: PRICES, routes })
  const text = marker()
  const told = { prompt_cache_key: marker(), safety_identifier: 'a person' }
  const { response } = await respond(tenant.key, { model: id, input: text, ...told })
  expect(response.status, JSON.stringify(response.error)).toBe('completed')
  expect(bodyOf(await seenRequest(gateway(), text))).toMatchObject(told)
})
