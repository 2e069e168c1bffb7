import { describe, expect, it } from 'vitest'
import { type Json, listOf, objectOf, textOf } from '../../../../../src/gateway/protocols/json.ts'
import {
  customToolArguments,
  customToolInput,
  upstreamToolName,
  upstreamTools,
} from '../../../../../src/gateway/translation/requests/responses-tools.ts'
import { originalToolNames } from '../../../../../src/gateway/translation/requests/tool-names.ts'
import { refusal } from './requests.ts'
import { answers, calls, item, toChat, toMessages, tool } from './responses.ts'

const strictSchema = { type: 'object', properties: {}, required: [], additionalProperties: false }
const toolsOf = (...tools: Json[]) => toChat({ tools }).tools
const LONG = `mcp__${'server'.repeat(12)}`

describe('tools', () => {
  it.each<[string, Json, Json]>([
    [
      'a function',
      tool('f'),
      { name: 'f', description: 'Does f.', parameters: { type: 'object', properties: {} } },
    ],
    [
      'a function of nothing else',
      { type: 'function', name: 'f', description: null, parameters: null, strict: null },
      { name: 'f', parameters: { type: 'object', properties: {} } },
    ],
    [
      'a schema without a type',
      { type: 'function', name: 'f', parameters: { properties: { a: {} } } },
      { name: 'f', parameters: { type: 'object', properties: { a: {} } } },
    ],
    [
      'a strict function',
      { type: 'function', name: 'f', parameters: strictSchema, strict: true },
      { name: 'f', parameters: strictSchema, strict: true },
    ],
    [
      'a function that would be strict',
      { type: 'function', name: 'f', parameters: strictSchema },
      { name: 'f', parameters: strictSchema },
    ],
    [
      'a function that cannot be strict',
      { type: 'function', name: 'f', parameters: { type: 'object', properties: { a: {} } }, strict: true },
      { name: 'f', parameters: { type: 'object', properties: { a: {} } } },
    ],
    [
      'a custom tool',
      {
        type: 'custom',
        name: 'patch',
        description: 'Edits.',
        format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
      },
      {
        name: 'patch',
        description: 'Edits.',
        parameters: {
          type: 'object',
          properties: {
            input: { type: 'string', description: 'Text that fits this grammar (lark):\nstart: "x"' },
          },
          required: ['input'],
          additionalProperties: false,
        },
      },
    ],
  ])('%s', (_case, given, made) => {
    expect(toolsOf(given)).toEqual([{ type: 'function', function: made }])
  })

  it('converts a custom tool of free text', () => {
    expect(JSON.stringify(toolsOf({ type: 'custom', name: 'run' }))).toContain('Free text.')
  })

  it('lets the tools of providers go', () => {
    const hosted = [
      'web_search',
      'web_search_preview',
      'shell',
      'local_shell',
      'computer_use_preview',
      'code_interpreter',
      'file_search',
      'image_generation',
      'mcp',
      'tool_search',
      'apply_patch',
    ]
    expect(toolsOf(...hosted.map((type) => ({ type })))).toBeUndefined()
    expect(upstreamTools(hosted.map((type) => ({ type }))).size).toBe(0)
  })

  it('keeps strict schemas that the messages protocol can hold to', () => {
    const given = tool('f', {
      strict: true,
      parameters: { type: 'object', properties: { a: { type: 'string' } } },
    })
    const [made] = listOf(toMessages({ tools: [given] }).tools)
    expect(made).toMatchObject({ name: 'f', strict: true, input_schema: { additionalProperties: false } })
  })

  it.each<[unknown, string]>([
    ['x', 'tools: Input should be an array.'],
    [[null], 'tools[0]: Input should be an object.'],
    [[{}], 'tools[0].type: Input should be a string of at least one character.'],
    [[{ type: 'function' }], 'tools[0].name: Input should be a string of at least one character.'],
    [[tool('f', { parameters: [] })], 'tools[0].parameters: Input should be an object.'],
    [[tool('f', { strict: 'x' })], 'tools[0].strict: Input should be a boolean.'],
    [[tool('f', { description: 1 })], 'tools[0].description: Input should be a string.'],
    [[{ type: 'namespace', name: 'n' }], 'tools[0].tools: Input should be an array.'],
    [
      [{ type: 'namespace', name: 'n', tools: [tool('')] }],
      'tools[0].tools[0].name: Input should be a string of at least one character.',
    ],
    [[{ type: 'custom', name: 'c', format: 'text' }], 'tools[0].format: Input should be an object.'],
    [[tool('f'), { type: 'custom', name: 'f' }], 'tools[1].name: two tools are named "f".'],
  ])('refuses %j', (tools, converted) => {
    expect(refusal(() => toChat({ tools }))).toBe(converted)
    expect(refusal(() => toMessages({ tools }))).toBe(converted)
  })
})

describe('names of tools', () => {
  const namespace = (name: string, ...tools: Json[]): Json => ({
    type: 'namespace',
    name,
    description: 'd',
    tools,
  })
  const tools = [
    tool('look'),
    namespace('mcp__gw', tool('read'), { type: 'custom', name: 'write' }, { type: 'web_search' }),
    namespace(LONG, tool('read')),
    tool('files.read'),
  ]

  it('are distinguished by their namespaces', () => {
    expect([...upstreamTools(tools)]).toEqual([
      ['look', { name: 'look', namespace: null, kind: 'function' }],
      ['mcp__gw__read', { name: 'read', namespace: 'mcp__gw', kind: 'function' }],
      ['mcp__gw__write', { name: 'write', namespace: 'mcp__gw', kind: 'custom' }],
      [upstreamToolName(LONG, 'read'), { name: 'read', namespace: LONG, kind: 'function' }],
      [upstreamToolName(null, 'files.read'), { name: 'files.read', namespace: null, kind: 'function' }],
    ])
  })

  it('are those of the converted requests', () => {
    const names = [...upstreamTools(tools).keys()]
    expect(listOf(toChat({ tools }).tools).map((each) => objectOf(each.function).name)).toEqual(names)
    expect(listOf(toMessages({ tools }).tools).map((each) => each.name)).toEqual(names)
  })

  it('are accepted everywhere and never renamed', () => {
    const names = [...upstreamTools(tools).keys()]
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
    expect(originalToolNames({ tools: names.map((name) => tool(name)) }).size).toBe(0)
  })

  it('are different ones where they would be the same', () => {
    const alike = [
      tool('a__b'),
      namespace('a', tool('b')),
      namespace('a__b', tool('c')),
      namespace('a', tool('b__c')),
    ]
    const named = upstreamTools(alike)
    expect([...named.values()].map((each) => [each.namespace, each.name])).toEqual([
      [null, 'a__b'],
      ['a', 'b'],
      ['a__b', 'c'],
      ['a', 'b__c'],
    ])
    const [first, second] = [...named.keys()]
    expect(first).toBe('a__b')
    const input = [item('user', 'x'), calls('c', 'b', '{}', { namespace: 'a' }), answers('c')]
    const [, called] = listOf(toChat({ tools: alike, input }).messages)
    expect(objectOf(listOf(called?.tool_calls)[0]?.function).name).toBe(second)
  })

  it('of earlier calls do not need the tool any more', () => {
    const input = [item('user', 'x'), calls('c', 'read', '{}', { namespace: LONG }), answers('c')]
    const [, called] = listOf(toChat({ input }).messages)
    expect(objectOf(listOf(called?.tool_calls)[0]?.function).name).toBe(upstreamToolName(LONG, 'read'))
    expect(listOf(toMessages({ input }).tools).map((each) => textOf(each.name))).toEqual([
      upstreamToolName(LONG, 'read'),
    ])
  })
})

describe('the choice of a tool', () => {
  const tools = [
    tool('f'),
    tool('g'),
    { type: 'custom', name: 'c' },
    { type: 'namespace', name: 'n', tools: [tool('h')] },
    { type: 'web_search' },
  ]
  const one = (name: string) => ({ type: 'function', function: { name } })
  const allowed = (mode: string, ...allowed: Json[]) => ({ type: 'allowed_tools', mode, tools: allowed })
  const named = (name: string, type = 'function') => ({ type, name })

  it.each<[string, unknown, unknown, unknown]>([
    ['none', undefined, undefined, undefined],
    ['null', null, undefined, undefined],
    ['auto', 'auto', 'auto', { type: 'auto' }],
    ['of no tool', 'none', 'none', { type: 'none' }],
    ['required', 'required', 'required', { type: 'any' }],
    ['of a function', named('f'), one('f'), { type: 'tool', name: 'f' }],
    ['of a custom tool', named('c', 'custom'), one('c'), { type: 'tool', name: 'c' }],
    ['within a namespace', { ...named('h'), namespace: 'n' }, one('n__h'), { type: 'tool', name: 'n__h' }],
    ['within a namespace that is not given', named('h'), one('n__h'), { type: 'tool', name: 'n__h' }],
    ['of a hosted tool', { type: 'web_search' }, 'auto', { type: 'auto' }],
    ['of some', allowed('auto', named('f'), named('g')), 'auto', { type: 'auto' }],
    ['of one that may be called', allowed('auto', named('f')), 'auto', { type: 'auto' }],
    ['of one that has to be called', allowed('required', named('f')), one('f'), { type: 'tool', name: 'f' }],
    [
      'of some that have to be called',
      allowed('required', named('f'), { type: 'web_search' }),
      'required',
      { type: 'any' },
    ],
    ['of hosted ones alone', allowed('required', { type: 'web_search' }), 'none', { type: 'none' }],
    ['of none of them', allowed('auto'), 'none', { type: 'none' }],
  ])('%s', (_case, tool_choice, chat, messages) => {
    const toldChat = toChat({ tools, tool_choice })
    const toldMessages = toMessages({ tools, tool_choice })
    expect(toldChat.tool_choice).toEqual(chat)
    expect(toldMessages.tool_choice).toEqual(messages)
    expect(toldChat.tools).toEqual(toChat({ tools }).tools)
    expect(toldMessages.tools).toEqual(toMessages({ tools }).tools)
  })

  it.each<[unknown, string]>([
    ['any', "tool_choice: Input should be 'auto', 'none', 'required' or an object with a type."],
    [{}, "tool_choice: Input should be 'auto', 'none', 'required' or an object with a type."],
    [7, 'tool_choice: Input should be an object.'],
    [named('nobody'), 'tool_choice.name: no tool is named "nobody".'],
    [allowed('any', named('f')), "tool_choice.mode: Input should be 'auto' or 'required'."],
    [allowed('auto', named('nobody')), 'tool_choice.tools[0].name: no tool is named "nobody".'],
    [{ type: 'allowed_tools', mode: 'auto' }, 'tool_choice.tools: Input should be an array.'],
  ])('refuses %j', (tool_choice, converted) => {
    expect(refusal(() => toChat({ tools, tool_choice }))).toBe(converted)
    expect(refusal(() => toMessages({ tools, tool_choice }))).toBe(converted)
  })

  it('lets only one be called at a time', () => {
    expect(toChat({ tools, parallel_tool_calls: false }).parallel_tool_calls).toBe(false)
    expect(toChat({ tools, parallel_tool_calls: true })).not.toHaveProperty('parallel_tool_calls')
    expect(toMessages({ tools, parallel_tool_calls: false }).tool_choice).toEqual({
      type: 'auto',
      disable_parallel_tool_use: true,
    })
  })
})

describe('the input of custom tools', () => {
  it.each(['', 'plain', '{"input":"x"}', 'line\n"quoted" \u{1f600}'])('comes back as it was: %j', (input) => {
    expect(customToolInput(customToolArguments(input))).toBe(input)
  })

  it.each([
    ['{"cut', '{"cut'],
    ['{"other":1}', '{"other":1}'],
    ['{"input":1}', '{"input":1}'],
    ['{}', ''],
  ])('is what was written where it is malformed: %j', (written, input) => {
    expect(customToolInput(written)).toBe(input)
  })
})
