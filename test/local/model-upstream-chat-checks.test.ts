import { describe, expect, it } from 'vitest'
import { chat, lastRecorded, post, register, useUpstream } from './model-upstream-harness.ts'
import {
  answered,
  asking,
  call,
  calling,
  fn,
  heard,
  inUser,
  type Json,
  object,
  reasoning,
  refusalOf,
  result,
  strict,
  text,
} from './model-upstream-requests.ts'

useUpstream()

describe('chat completions refuses', () => {
  it.each<[string, string, Json]>([
    ['no messages', "Invalid 'messages': empty array", { messages: [] }],
    [
      'a role unheard of',
      "Invalid value: 'human'. Supported values are: 'system'",
      { messages: [{ role: 'human', content: 'x' }] },
    ],
    [
      'null as content',
      "Invalid value for 'content': expected a string, got null.",
      { messages: [{ role: 'user', content: null }] },
    ],
    ['a block of messages', "Invalid value: 'tool_result'", { messages: [heard(result())] }],
    [
      'an image of the system',
      "Invalid content type 'image_url' for messages with role 'system'",
      {
        messages: [
          { role: 'system', content: [{ type: 'image_url', image_url: { url: 'https://example.com' } }] },
        ],
      },
    ],
    [
      'an image that is no URL',
      'Expected a valid URL',
      inUser({ type: 'image_url', image_url: { url: 'AAAA' } }),
    ],
    [
      'a file without a name',
      "Missing required parameter: 'messages[0].content[0].file.filename'",
      inUser({ type: 'file', file: { file_data: 'data:application/pdf;base64,AA' } }),
    ],
    [
      'a call without arguments',
      "tool_calls[0].function.arguments': expected a string",
      { messages: [asking, calling(call('a', { function: { name: 'f', arguments: {} } }))] },
    ],
    [
      'an empty list of calls',
      "tool_calls': empty array",
      { messages: [asking, { role: 'assistant', content: 'x', tool_calls: [] }] },
    ],
    [
      'a long call id',
      'maximum length 40',
      { messages: [asking, calling(call('c'.repeat(41))), answered('c'.repeat(41))] },
    ],
    [
      'a result without its id',
      "Missing required parameter: 'messages[2].tool_call_id'",
      { messages: [asking, calling(call()), { role: 'tool', content: '1' }] },
    ],
    [
      'one of two results missing',
      'did not have response messages: call_2',
      { messages: [asking, calling(call(), call('call_2')), answered()] },
    ],
    [
      'a result twice',
      "'tool_call_id' of 'call_1' not found",
      { messages: [asking, calling(call()), answered(), answered()] },
    ],
    [
      'a tool type of messages',
      "Supported values are: 'function' and 'custom'.",
      { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
    ],
    [
      'a flat tool',
      "Missing required parameter: 'tools[0].function'",
      { tools: [{ type: 'function', name: 'f' }] },
    ],
    ['no tools in a list of tools', "Invalid 'tools': empty array", { tools: [] }],
    ['a long name', 'maximum length 64', { tools: [fn({ name: 'f'.repeat(65) })] }],
    [
      'an array of nothing',
      'array schema missing items',
      { tools: [fn({ parameters: { type: 'object', properties: { a: { type: 'array' } } } })] },
    ],
    [
      'a strict function that is open',
      "Invalid schema for function 'f': In context=()",
      { tools: [fn({ strict: true })] },
    ],
    [
      'a choice without tools',
      "'tool_choice' is only allowed when 'tools' are specified",
      { tool_choice: 'auto' },
    ],
    ['parallel calls without tools', "'parallel_tool_calls' is only allowed", { parallel_tool_calls: false }],
    ['a choice in the words of messages', "Invalid value: 'any'", { tools: [fn()], tool_choice: 'any' }],
    [
      'a choice in the form of messages',
      "Supported values are: 'function', 'allowed_tools', and 'custom'",
      { tools: [fn()], tool_choice: { type: 'tool', name: 'f' } },
    ],
    [
      'a choice of a tool unheard of',
      "'g' not found",
      { tools: [fn()], tool_choice: { type: 'function', function: { name: 'g' } } },
    ],
    ['five stops', 'maximum length 4, but got an array with length 5', { stop: ['a', 'b', 'c', 'd', 'e'] }],
    ['a high temperature', "Invalid 'temperature'", { temperature: 2.5 }],
    ['top_logprobs alone', "'top_logprobs' is only allowed when 'logprobs' is enabled", { top_logprobs: 2 }],
    ['two maximums', 'at the same time is not supported', { max_completion_tokens: 5 }],
    [
      'JSON mode without the word',
      "must contain the word 'json'",
      { response_format: { type: 'json_object' } },
    ],
    [
      'a schema without a name',
      "Missing required parameter: 'response_format.json_schema.name'",
      { response_format: { type: 'json_schema', json_schema: { schema: object() } } },
    ],
    [
      'a strict schema that is open',
      "Invalid schema for response_format 'n': In context=(), 'additionalProperties' is required",
      strict({ type: 'object', properties: {} }),
    ],
    [
      'a strict schema with something optional',
      "In context=('properties', 'a'), 'required' is required to be supplied and to be an array including every key in properties. Missing 'b'",
      strict(
        object({ properties: { a: object({ properties: { b: { type: 'string' } } }) }, required: ['a'] }),
      ),
    ],
    ['the format of messages', "Invalid value: 'json'", { response_format: { type: 'json' } }],
    ['max_tokens of a reasoning model', "Use 'max_completion_tokens' instead", reasoning({ max_tokens: 5 })],
    [
      'temperature of a reasoning model',
      "'temperature' does not support 0.5 with this model",
      reasoning({ temperature: 0.5 }),
    ],
    ['stop of a reasoning model', "Unsupported parameter: 'stop'", reasoning({ stop: 'x' })],
    [
      'an effort of messages',
      "Invalid value: 'max'. Supported values are: 'none'",
      reasoning({ reasoning_effort: 'max' }),
    ],
    [
      'more tokens than there are',
      'max_completion_tokens is too large: 20000',
      reasoning({ max_completion_tokens: 20_000 }),
    ],
    [
      'an effort of another model',
      'Unrecognized request argument supplied: reasoning_effort',
      { reasoning_effort: 'low' },
    ],
    [
      'JSON mode of a model without',
      "'response_format' of type 'json_object' is not supported",
      { model: 'scripted-chat-plain', response_format: { type: 'json_object' } },
    ],
    [
      'an image for a model without',
      'image_url is only supported by certain models',
      {
        model: 'scripted-chat-plain',
        ...inUser({ type: 'image_url', image_url: { url: 'https://example.com' } }),
      },
    ],
    [
      'tools of a model that would reason',
      "set reasoning_effort to 'none'",
      { model: 'gpt-5.6-sol', max_tokens: undefined, tools: [fn()] },
    ],
  ])('%s', async (_, reason, more) => {
    const { message, param, code } = await refusalOf(await chat('hi', more))
    expect(message).toContain(reason)
    expect([typeof param, typeof code].every((type) => type === 'string' || type === 'object')).toBe(true)
  })

  it('nothing of what the vendor takes', async () => {
    const messages = [
      { role: 'developer', content: [{ type: 'text', text: 'answer in JSON' }] },
      heard(
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
        text('a'),
      ),
      calling(call(), call('call_2')),
      answered('call_2'),
      answered(),
      { role: 'assistant', content: 'b', refusal: null },
      asking,
    ]
    const more = {
      tools: [fn(), { type: 'custom', custom: { name: 'c' } }],
      tool_choice: 'auto',
      response_format: { type: 'json_object' },
    }
    expect((await chat('', { messages, ...more })).status).toBe(200)
    const reasons = reasoning({ max_completion_tokens: 500, reasoning_effort: 'high', temperature: 1 })
    const answer = (await (await chat('hi', reasons)).json()) as { usage: Json }
    expect(answer.usage).toMatchObject({ completion_tokens_details: { reasoning_tokens: 64 } })
  })

  it('no member for being unknown, but records it', async () => {
    const blocks = { messages: [heard(text('hi', { cache_control: { type: 'ephemeral' } }))] }
    expect((await chat('', { ...blocks, thinking: {}, repetition_penalty: 1 })).status).toBe(200)
    expect((await lastRecorded()).unknownMembers).toEqual([
      'thinking',
      'repetition_penalty',
      'messages[0].content[0].cache_control',
    ])
  })
})

describe('scripts', () => {
  it('do not answer what the vendor would refuse', async () => {
    for (const script of ['parallel-tools', 'canned', 'error-500']) {
      await refusalOf(await chat(`script:${script}`, { stop: ['a', 'b', 'c', 'd', 'e'] }))
    }
    await register('checked', { steps: [{ json: {} }] })
    await refusalOf(await post('/v1/messages', 'script:checked', { n: 1 }))
  })

  it('about the wire take unknown members at the top level', async () => {
    expect((await post('/v1/messages', 'script:canned', { x_new: 1 })).status).toBe(200)
    await refusalOf(await post('/v1/messages', 'script:canned', inUser(text('script:canned', { x_new: 1 }))))
  })
})
