import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { callTool, say } from './support/dlp-answers.ts'
import type { Json } from './support/response-calls.ts'
import { bodyOf, CORNER_WAYS, postResponse, respond, turnsScript } from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const tool = (name: string) => ({
  type: 'function',
  name,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
})
const TOOLS = [tool('get_weather'), tool('get_time')]
const allowed = (mode: string, ...names: string[]) => ({
  type: 'allowed_tools',
  mode,
  tools: names.map((name) => ({ type: 'function', name })),
})

const named = { type: 'function', name: 'get_time' }

describe.each(CORNER_WAYS)('tool_choice (%s)', (_, { upstream, model, stream }) => {
  const call = (body: Json) => respond(tenant.key, { model, stream, tools: TOOLS, ...body })
  const CHOICES: Array<[choice: unknown, chat: unknown, messages: unknown]> = [
    ['auto', 'auto', { type: 'auto' }],
    ['none', 'none', { type: 'none' }],
    ['required', 'required', { type: 'any' }],
    [named, { type: 'function', function: { name: 'get_time' } }, { type: 'tool', name: 'get_time' }],
    [
      allowed('required', 'get_time'),
      { type: 'function', function: { name: 'get_time' } },
      { type: 'tool', name: 'get_time' },
    ],
    [allowed('auto', 'get_time'), 'auto', { type: 'auto' }],
  ]

  it.each(CHOICES)('%j is sent to the model, and echoed', async (choice, chat, messages) => {
    const text = marker()
    const { response } = await call({ input: `Say hello. ${text}`, tool_choice: choice })
    expect(response.tool_choice).toEqual(choice)
    const body = bodyOf(await seenRequest(gateway(), text))
    const isChat = upstream === 'chat'
    const told = body.tool_choice ?? (isChat ? 'auto' : { type: 'auto' })
    expect([told]).toMatchObject([isChat ? chat : messages])
    // All tools stay: caches of prompts begin with them.
    expect(JSON.stringify(body.tools)).toMatch(/get_weather.*get_time.*"shell".*"web_search"/)
    const calls = response.output.filter(({ type }) => type === 'function_call')
    const forced = choice === 'required' ? ['get_weather'] : ['get_time']
    const isForced = choice !== 'auto' && choice !== 'none' && (choice as Json).mode !== 'auto'
    expect(calls.map(({ name }) => name)).toEqual(isForced ? forced : [])
  })

  it.each([
    ['allowed_tools', allowed('auto', 'get_time')],
    ['none', 'none'],
    ['the choice of one', named],
  ])('a model that calls another tool than %s allows is told so, and goes on', async (_name, choice) => {
    const text = marker()
    const script = await turnsScript(upstream, [
      [say('Let me see.'), callTool('get_weather', { city: 'Paris' })],
      [say('I cannot look that up.')],
    ])
    const { response } = await call({ input: `${script} ${text}`, tool_choice: choice })
    expect(response).toMatchObject({ status: 'completed', incomplete_details: null })
    expect(response.output.map(({ type }) => type)).toEqual(['message', 'message'])
    expect(response.output_text).toBe('Let me see.I cannot look that up.')
    const [, second, third] = await seenRequests(gateway(), text)
    expect(third).toBeUndefined()
    const told = JSON.stringify(second && bodyOf(second).messages.at(-1))
    expect(told).toContain('get_weather may not be used')
  })

  it('a call that is allowed beside one that is not ends the response with that one', async () => {
    const script = await turnsScript(upstream, [
      [callTool('get_weather', { city: 'Paris' }), callTool('get_time', { city: 'Rome' })],
      [say('It is noon.')],
    ])
    const choice = allowed('auto', 'get_time')
    const { response } = await call({ input: script, tool_choice: choice })
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'tool_use' } })
    expect(response.output.map(({ name }) => name)).toEqual(['get_time'])
    const output = { type: 'function_call_output', call_id: response.output[0]?.call_id, output: 'noon' }
    const { response: next } = await call({ previous_response_id: response.id, input: [output] })
    expect(next).toMatchObject({ status: 'completed', output_text: 'It is noon.' })
  })

  it('namespaces are allowed as a whole, or tool by tool', async () => {
    const namespace = (name: string) => ({
      type: 'namespace',
      name,
      description: name,
      tools: [tool('find')],
    })
    const tools = [namespace('crm'), namespace('erp'), tool('find')]
    const calls = ['crm__find', 'erp__find', 'find'].map((name) => callTool(name, { city: 'Paris' }))
    const cases: Array<[entry: Json, shown: unknown[]]> = [
      [{ type: 'namespace', name: 'crm' }, ['crm']],
      [{ type: 'function', name: 'find', namespace: 'erp' }, ['erp']],
    ]
    for (const [entry, shown] of cases) {
      const input = await turnsScript(upstream, [calls])
      const choice = { type: 'allowed_tools', mode: 'auto', tools: [entry] }
      const { response } = await call({ input, tools, tool_choice: choice })
      expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'tool_use' } })
      expect(response.output.map((item) => item.namespace)).toEqual(shown)
    }
  })

  it('parallel_tool_calls is sent to the model', async () => {
    const text = marker()
    const { response } = await call({ input: `Use every tool. ${text}`, parallel_tool_calls: false })
    expect(response.output.map(({ name }) => name)).toEqual(['get_weather'])
    const body = bodyOf(await seenRequest(gateway(), text))
    if (upstream === 'chat') expect(body.parallel_tool_calls).toBe(false)
    else expect(body.tool_choice).toMatchObject({ disable_parallel_tool_use: true })
  })

  it('a call of a tool that was not offered gets the result that it is unknown', async () => {
    const text = marker()
    const script = await turnsScript(upstream, [[callTool('rm_rf', { path: '/' })], [say('Sorry.')]])
    const { response } = await call({ input: `${script} ${text}` })
    expect(response).toMatchObject({ status: 'completed', output_text: 'Sorry.' })
    expect(response.output.map(({ type }) => type)).toEqual(['message'])
    const [, second] = await seenRequests(gateway(), text)
    expect(JSON.stringify(second && bodyOf(second).messages.at(-1))).toContain('no tool named rm_rf')
  })
})

it.each([
  [{ type: 'function', name: 'nobody' }, /^tool_choice/],
  [allowed('auto', 'nobody'), /^tool_choice/],
  [allowed('sometimes', 'get_time'), /^tool_choice\.mode/],
  ['maybe', /^tool_choice/],
])('%j is refused', async (choice, message) => {
  const answer = await postResponse(tenant.key, { tools: TOOLS, tool_choice: choice, stream: true })
  expect(jsonOf(answer)).toEqual({
    error: { message: expect.stringMatching(message), type: 'invalid_request_error', code: 'invalid_body' },
  })
  expect(answer.status).toBe(400)
})
