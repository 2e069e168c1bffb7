import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { RESPONSES_ITEMS } from '../../../../../src/gateway/translation/requests/responses-items.ts'
import { RESPONSES_MEMBERS, RESPONSES_PARTS } from '../fidelity/documented-members.ts'
import { OfficialTypes } from './official-types.ts'
import { refusal, target, user } from './requests.ts'
import { instructsJson, toChat, toMessages, tool } from './responses.ts'

describe('members of a turn as those of a chat completion request', () => {
  const reasons = target('reasoning', 'json_schema', 'json_object')
  const openai = (more = reasons) => ({ ...more, upstreamModel: 'gpt-5.2' })
  const strictSchema = { type: 'object', properties: {}, required: [], additionalProperties: false }
  const schema = { type: 'object', properties: { a: {} } }
  const format = (more: Json) => ({ text: { format: { type: 'json_schema', name: 'x y', ...more } } })
  const wanted = (json_schema: Json) => ({ response_format: { type: 'json_schema', json_schema } })
  const named = expect.stringMatching(/^x_y_[0-9a-f]{14}$/)
  const tools = [tool('f')]

  it.each<[string, Json, Json, ReturnType<typeof target>?]>([
    ['nothing', {}, {}],
    ['nulls', { temperature: null, text: null, reasoning: null, tools: null, user: null, stream: null }, {}],
    ['a stream', { stream: true }, { stream: true, stream_options: { include_usage: true } }],
    ['a maximum', { max_output_tokens: 50 }, { max_tokens: 50 }],
    [
      'a maximum of a model that reasons',
      { max_output_tokens: 50_000 },
      { max_completion_tokens: 10_000 },
      reasons,
    ],
    [
      'sampling',
      { temperature: 0.5, top_p: 0.1, presence_penalty: 1, frequency_penalty: 0, top_logprobs: 3 },
      { temperature: 0.5, top_p: 0.1, presence_penalty: 1, frequency_penalty: 0 },
    ],
    ['sampling of a model that reasons', { temperature: 0.5, presence_penalty: 1 }, {}, reasons],
    [
      'an effort',
      { reasoning: { effort: 'xhigh', summary: 'auto' } },
      { reasoning_effort: 'xhigh' },
      reasons,
    ],
    ['an effort of tomorrow', { reasoning: { effort: 'toString' } }, {}, reasons],
    ['an effort for a model that does not reason', { reasoning: { effort: 'low' } }, {}],
    [
      'tools of a model that takes them without reasoning only',
      { reasoning: { effort: 'high' }, tools },
      { reasoning_effort: 'none', tools: expect.anything() },
      target('reasoning', 'tools_without_reasoning'),
    ],
    [
      'what other vendors refuse',
      {
        prompt_cache_key: 'k',
        safety_identifier: 's',
        service_tier: 'flex',
        text: { verbosity: 'low' },
        user: 'u',
      },
      { user: 'u' },
      reasons,
    ],
    [
      'what only one vendor knows',
      {
        prompt_cache_key: 'k',
        safety_identifier: 's',
        service_tier: 'flex',
        text: { verbosity: 'low' },
        user: 'u',
      },
      { user: 'u', prompt_cache_key: 'k', safety_identifier: 's', service_tier: 'flex', verbosity: 'low' },
      openai(),
    ],
    ['the usual verbosity', { text: { verbosity: 'medium' } }, {}, openai()],
    ['plain text', { text: { format: { type: 'text' } } }, {}],
    ['an empty text', { text: {} }, {}],
    ['JSON', { text: { format: { type: 'json_object' } } }, { response_format: { type: 'json_object' } }],
    ['a schema', format({ schema, strict: null }), wanted({ name: named, schema })],
    [
      'a strict schema',
      format({ schema: strictSchema, strict: true, description: 'd' }),
      wanted({ name: named, description: 'd', schema: strictSchema, strict: true }),
    ],
    [
      'a schema that is too free to be strict',
      format({ schema, strict: true }),
      wanted({ name: named, schema }),
    ],
    ['choices without tools', { tool_choice: 'required', parallel_tool_calls: false, tools: [] }, {}],
    ['members of tomorrow', { store: true, metadata: {}, include: [], new: 1 }, { new: 1 }],
  ])('%s', (_case, asked, said, model = undefined) => {
    const { model: _model, messages: _messages, ...members } = toChat(asked, model)
    expect(members).toEqual(said)
  })

  it.each<[string, Json, ReturnType<typeof target>, Json | undefined, RegExp]>([
    [
      'a schema',
      { text: { format: { type: 'json_schema', name: 'x', schema } } },
      target('json_object'),
      { type: 'json_object' },
      /fits the JSON schema below[\s\S]*"properties":\{"a"/,
    ],
    [
      'a schema',
      { text: { format: { type: 'json_schema', name: 'x', schema } } },
      target(),
      undefined,
      /fits the JSON schema below/,
    ],
    [
      'an object',
      { text: { format: { type: 'json_object' } } },
      target(),
      undefined,
      /exactly one JSON object/,
    ],
  ])('asks in words for %s that the model has no mode for', (_case, asked, model, responseFormat, words) => {
    const converted = toChat({ instructions: 'Be brief.', ...asked }, model)
    expect(converted.response_format).toEqual(responseFormat)
    expect(converted.messages).toEqual([
      { role: 'system', content: expect.stringMatching(words) },
      user('Hello'),
    ])
    expect(JSON.stringify(converted.messages)).toContain('Be brief.')
    expect(instructsJson(asked, model).onChat).toBe(true)
    expect(instructsJson(asked, target('json_schema', 'json_object')).onChat).toBe(false)
  })

  it('asks for an object beside tools, which may be called first', () => {
    const asked = { text: { format: { type: 'json_object' } }, tools }
    const [instruction] = toChat(asked, target()).messages as Json[]
    expect(instruction?.content).toMatch(/^Answer with exactly one JSON object\..* Tools may still be called/)
    expect(instructsJson(asked, target())).toEqual({ onChat: true, onMessages: true })
  })

  it.each<[Json, string]>([
    [{ temperature: 'hot' }, 'temperature: Input should be a number.'],
    [{ top_logprobs: {} }, 'top_logprobs: Input should be a number.'],
    [{ max_output_tokens: '5' }, 'max_output_tokens: Input should be a number.'],
    [{ stream: 'yes' }, 'stream: Input should be a boolean.'],
    [{ text: 'x' }, 'text: Input should be an object.'],
    [{ text: { verbosity: 1 } }, 'text.verbosity: Input should be a string.'],
    [{ text: { format: 'json' } }, 'text.format: Input should be an object.'],
    [
      { text: { format: { type: 'xml' } } },
      "text.format.type: Input should be 'text', 'json_object' or 'json_schema'.",
    ],
    [format({}), 'text.format.schema: Input should be an object.'],
    [format({ schema, strict: 1 }), 'text.format.strict: Input should be a boolean.'],
    [{ reasoning: 'high' }, 'reasoning: Input should be an object.'],
    [{ reasoning: { effort: 3 } }, 'reasoning.effort: Input should be a string.'],
    [{ user: 5 }, 'user: Input should be a string.'],
    [{ parallel_tool_calls: 'no' }, 'parallel_tool_calls: Input should be a boolean.'],
  ])('refuses %j', (asked, converted) => {
    expect(refusal(() => toChat(asked))).toBe(converted)
    expect(refusal(() => toMessages(asked))).toBe(converted)
  })
})

describe('the tables of what becomes of a turn', () => {
  const official = new OfficialTypes('openai', 'resources/responses/responses.d.ts')
  /** Members of the response, not of one turn: they are not sent to the model. */
  const OF_RESPONSES = new Set([
    'access_programs',
    'background',
    'context_management',
    'conversation',
    'image',
    'include',
    'max_tool_calls',
    'metadata',
    'moderation',
    'previous_response_id',
    'prompt',
    'prompt_cache_options',
    'prompt_cache_retention',
    'store',
    'stream_options',
    'truncation',
  ])

  it.each([
    ['members', RESPONSES_MEMBERS, official.members('ResponseCreateParamsBase')],
    ['items', RESPONSES_ITEMS, official.kinds('ResponseInputItem')],
    ['parts', RESPONSES_PARTS, official.kinds('ResponseInputContent')],
  ])('decide of all %s that the vendor has', (_table, rules, names) => {
    const undecided = names.filter((name) => !Object.hasOwn(rules, name) && !OF_RESPONSES.has(name))
    expect(undecided).toEqual([])
    for (const [name, rule] of Object.entries(rules)) {
      if (rule.treatment !== 'kept') expect(rule.note, name).not.toBe('')
    }
  })
})
