import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { callTool, say } from './support/dlp-answers.ts'
import type { Json } from './support/response-calls.ts'
import { bodyOf, CORNER_WAYS, HOSTED_TOOLS, respond, turnsScript } from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const functionTool = (name: string, more: Json = {}) => ({
  type: 'function',
  name,
  description: `Does ${name}.`,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  ...more,
})
const WEATHER = functionTool('get_weather')
const TIME = functionTool('get_time')

/** The calls of a response, without what differs each time. */
const callsOf = (response: { output: Json[] }) =>
  response.output
    .filter(({ type }) => String(type).endsWith('_call'))
    .map(({ id, call_id, ...call }) => {
      expect(String(id)).toMatch(call.type === 'function_call' ? /^fc_/ : /^ctc_/)
      expect(call_id).toEqual(expect.any(String))
      return call
    })

describe.each(CORNER_WAYS)('tools (%s)', (_, { upstream, model, stream }) => {
  const call = (body: Json) => respond(tenant.key, { model, stream, ...body })

  it('a call ends the response, and its output continues the conversation', async () => {
    const text = marker()
    const script = await turnsScript(upstream, [
      [say('Let me look.'), callTool('get_weather', { city: 'Paris' })],
      [say('It is 21 degrees.')],
    ])
    const { response } = await call({ input: `${script} ${text}`, tools: [WEATHER, TIME] })
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'tool_use' },
      output_text: 'Let me look.',
      tools: [WEATHER, TIME, ...HOSTED_TOOLS],
      tool_choice: 'auto',
      parallel_tool_calls: true,
    })
    expect(response.output.map(({ type }) => type)).toEqual(['message', 'function_call'])
    expect(callsOf(response)).toEqual([
      { type: 'function_call', name: 'get_weather', arguments: '{"city":"Paris"}', status: 'completed' },
    ])
    const { response: next } = await call({
      conversation: response.conversation?.id,
      input: [{ type: 'function_call_output', call_id: response.output[1]?.call_id, output: '21' }],
      tools: [WEATHER, TIME],
    })
    expect(next).toMatchObject({ status: 'completed', output_text: 'It is 21 degrees.' })
    const [, second] = await seenRequests(gateway(), text)
    expect(second && JSON.stringify(bodyOf(second).messages)).toContain('Paris')
    expect(second && bodyOf(second).messages.at(-1)).toMatchObject(
      upstream === 'chat'
        ? { role: 'tool', content: '21' }
        : { role: 'user', content: [{ type: 'tool_result', content: [{ text: '21' }] }] },
    )
  })

  it('several calls of one turn are answered together, in any order', async () => {
    const script = await turnsScript(upstream, [
      [callTool('get_weather', { city: 'Paris' }), callTool('get_time', { city: 'Rome' })],
      [say('Both are known.')],
    ])
    const { response } = await call({ input: script, tools: [WEATHER, TIME] })
    expect(callsOf(response)).toMatchObject([
      { name: 'get_weather', arguments: '{"city":"Paris"}' },
      { name: 'get_time', arguments: '{"city":"Rome"}' },
    ])
    const outputs = response.output.map(({ call_id, name }) => ({
      type: 'function_call_output',
      call_id,
      output: `of ${name}`,
    }))
    const { response: next } = await call({
      previous_response_id: response.id,
      input: outputs.toReversed(),
      tools: [WEATHER, TIME],
    })
    expect(next).toMatchObject({ status: 'completed', output_text: 'Both are known.' })
  })

  it('a call that has no output is refused, and an output without a call', async () => {
    const script = await turnsScript(upstream, [[callTool('get_weather', { city: 'Paris' })]])
    const { response } = await call({ input: script, tools: [WEATHER] })
    const callId = response.output[0]?.call_id
    await expect(call({ previous_response_id: response.id, input: 'Well?' })).rejects.toThrow(
      `status 400, application/json`.slice(0, 10),
    )
    await expect(
      call({ input: [{ type: 'function_call_output', call_id: 'call_x', output: '1' }] }),
    ).rejects.toThrow('No tool call found for function call output with call_id call_x.')
    expect(callId).toEqual(expect.any(String))
  })

  it('a tool of a namespace comes back with it', async () => {
    const text = marker()
    const tools = [
      { type: 'namespace', name: 'crm', description: 'Customers.', tools: [functionTool('find')] },
      functionTool('find'),
    ]
    const script = await turnsScript(upstream, [
      [callTool('crm__find', { city: 'Paris' }), callTool('find', { city: 'Rome' })],
      [say('Found.')],
    ])
    const { response } = await call({ input: `${script} ${text}`, tools })
    expect(callsOf(response)).toEqual([
      {
        type: 'function_call',
        name: 'find',
        namespace: 'crm',
        arguments: '{"city":"Paris"}',
        status: 'completed',
      },
      { type: 'function_call', name: 'find', arguments: '{"city":"Rome"}', status: 'completed' },
    ])
    expect(response.tools).toEqual([...tools, ...HOSTED_TOOLS])
    const outputs = response.output.map(({ call_id }) => ({
      type: 'function_call_output',
      call_id,
      output: 'found',
    }))
    const { response: next } = await call({ previous_response_id: response.id, input: outputs, tools })
    expect(next.output_text).toBe('Found.')
    const [first, second] = await seenRequests(gateway(), text)
    const offered = JSON.stringify(first && bodyOf(first).tools)
    for (const seen of [offered, second && JSON.stringify(bodyOf(second).messages)]) {
      expect(seen).toContain('"crm__find"')
      expect(seen).toContain('"find"')
    }
  })

  it('a custom tool is given its text', async () => {
    const text = marker()
    const tools = [{ type: 'custom', name: 'run_code', description: 'Runs code.' }]
    const script = await turnsScript(upstream, [
      [callTool('run_code', { input: 'print("é 🦉")\n' })],
      [say('It ran.')],
    ])
    const { response, events } = await call({ input: `${script} ${text}`, tools })
    expect(callsOf(response)).toEqual([
      { type: 'custom_tool_call', name: 'run_code', input: 'print("é 🦉")\n', status: 'completed' },
    ])
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'tool_use' } })
    const told = events.filter(({ event }) => event === 'response.custom_tool_call_input.done')
    expect(told.map(({ data }) => data.input)).toEqual(stream ? ['print("é 🦉")\n'] : [])
    const output = { type: 'custom_tool_call_output', call_id: response.output[0]?.call_id, output: 'ok' }
    const { response: next } = await call({ previous_response_id: response.id, input: [output], tools })
    expect(next.output_text).toBe('It ran.')
    const [, second] = await seenRequests(gateway(), text)
    expect(second && JSON.stringify(bodyOf(second).messages)).toContain('run_code')
  })

  it('an output may have parts', async () => {
    const text = marker()
    const script = await turnsScript(upstream, [[callTool('get_weather', { city: 'Paris' })], [say('Seen.')]])
    const { response } = await call({ input: `${script} ${text}`, tools: [WEATHER] })
    const { response: next } = await call({
      previous_response_id: response.id,
      input: [
        {
          type: 'function_call_output',
          call_id: response.output[0]?.call_id,
          output: [
            { type: 'input_text', text: 'one part' },
            { type: 'input_text', text: 'another part' },
          ],
        },
      ],
      tools: [WEATHER],
    })
    expect(next.output_text).toBe('Seen.')
    const [, second] = await seenRequests(gateway(), text)
    const said = JSON.stringify(second && bodyOf(second).messages)
    expect(said).toContain('one part')
    expect(said).toContain('another part')
  })

  it('strict schemas are sent as strict if the schema fits', async () => {
    const text = marker()
    const strict = functionTool('get_weather', {
      strict: true,
      parameters: { ...WEATHER.parameters, additionalProperties: false },
    })
    await call({ input: text, tools: [strict] })
    const body = bodyOf(await seenRequest(gateway(), text))
    expect(JSON.stringify(body.tools)).toContain('"city"')
    if (upstream === 'chat')
      expect(body.tools).toContainEqual(
        expect.objectContaining({ function: expect.objectContaining({ name: 'get_weather', strict: true }) }),
      )
  })
})
