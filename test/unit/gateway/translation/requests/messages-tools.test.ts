import { describe, expect, it } from 'vitest'
import { type Json, listOf, objectOf } from '../../../../../src/gateway/protocols/json.ts'
import {
  originalToolNames,
  usableToolName,
} from '../../../../../src/gateway/translation/requests/tool-names.ts'
import {
  assistant,
  call,
  fromChat,
  fromMessages,
  functionTool,
  refusal,
  target,
  toolMessage,
  user,
} from './requests.ts'

const EMPTY = { type: 'object', properties: {} }
const LONG = `mcp__server__${'x'.repeat(70)}`

describe('function tools for the messages protocol', () => {
  const tool = (members: Json, beside: Json = {}) =>
    listOf(
      fromChat({ tools: [{ type: 'function', function: { name: 'f', ...members }, ...beside }] }).tools,
    )[0]

  it.each<[Json, Json, Json]>([
    [{}, {}, { input_schema: EMPTY }],
    [{ parameters: null, description: 'd' }, {}, { description: 'd', input_schema: EMPTY }],
    [
      { parameters: { properties: { a: {} } } },
      {},
      { input_schema: { type: 'object', properties: { a: {} } } },
    ],
    [
      { parameters: { type: 'object', properties: { a: { type: 'number', minimum: 1 } } }, strict: false },
      {},
      { input_schema: { type: 'object', properties: { a: { type: 'number', minimum: 1 } } } },
    ],
    [
      { parameters: { type: 'object', properties: { a: { type: 'number', minimum: 1 } } }, strict: true },
      {},
      {
        strict: true,
        input_schema: {
          type: 'object',
          properties: { a: { type: 'number', description: '(minimum: 1)' } },
          additionalProperties: false,
        },
      },
    ],
    [{ parameters: { type: 'object' }, strict: true }, {}, { input_schema: { type: 'object' } }],
    [
      {},
      { cache_control: { type: 'ephemeral' } },
      { input_schema: EMPTY, cache_control: { type: 'ephemeral' } },
    ],
    [
      { cache_control: { type: 'ephemeral' } },
      {},
      { input_schema: EMPTY, cache_control: { type: 'ephemeral' } },
    ],
  ])('%j %j', (members, beside, said) => {
    expect(tool(members, beside)).toEqual({ name: 'f', ...said })
  })

  it('refuses custom tools', () => {
    const custom = { type: 'custom', custom: { name: 'c' } }
    expect(refusal(() => fromChat({ tools: [functionTool('f'), custom] }))).toBe(
      'tools.1: tools of type custom are not supported by this model.',
    )
  })

  it('offers no tools where none are given', () => {
    expect(fromChat({ tools: [], tool_choice: 'auto' })).not.toHaveProperty('tools')
    expect(fromChat({ tools: [], tool_choice: 'auto' })).not.toHaveProperty('tool_choice')
  })
})

describe('the choice of tools for the messages protocol', () => {
  const tools = [functionTool('f'), functionTool('g')]
  const allowed = (mode: string, ...names: string[]) => ({
    type: 'allowed_tools',
    allowed_tools: { mode, tools: names.map((name) => ({ type: 'function', function: { name } })) },
  })

  it.each<[Json, unknown, string[]]>([
    [{}, undefined, ['f', 'g']],
    [{ tool_choice: null }, undefined, ['f', 'g']],
    [{ tool_choice: 'auto' }, { type: 'auto' }, ['f', 'g']],
    [{ tool_choice: 'none' }, { type: 'none' }, ['f', 'g']],
    [{ tool_choice: 'required' }, { type: 'any' }, ['f', 'g']],
    [{ tool_choice: { type: 'function', function: { name: 'g' } } }, { type: 'tool', name: 'g' }, ['f', 'g']],
    [{ tool_choice: allowed('auto', 'g') }, { type: 'auto' }, ['g']],
    [{ tool_choice: allowed('required', 'g', 'f') }, { type: 'any' }, ['f', 'g']],
    [{ tool_choice: allowed('required') }, { type: 'none' }, ['f', 'g']],
    [{ parallel_tool_calls: true }, undefined, ['f', 'g']],
    [{ parallel_tool_calls: false }, { type: 'auto', disable_parallel_tool_use: true }, ['f', 'g']],
    [{ parallel_tool_calls: false, tool_choice: 'none' }, { type: 'none' }, ['f', 'g']],
    [
      { parallel_tool_calls: false, tool_choice: 'required' },
      { type: 'any', disable_parallel_tool_use: true },
      ['f', 'g'],
    ],
  ])('%j', (members, choice, names) => {
    const request = fromChat({ tools, ...members })
    expect(request.tool_choice).toEqual(choice)
    expect(listOf(request.tools).map((tool) => tool.name)).toEqual(names)
  })

  it.each<[unknown, string]>([
    ['any', "tool_choice: Input should be 'auto', 'none', 'required' or an object."],
    ['constructor', "tool_choice: Input should be 'auto', 'none', 'required' or an object."],
    [
      { type: 'custom', custom: { name: 'f' } },
      'tool_choice: choices of type custom are not supported by this model.',
    ],
    [allowed('auto', 'f', 'h'), 'tool_choice.allowed_tools: no function tool is named "h".'],
  ])('refuses %j', (tool_choice, converted) => {
    expect(refusal(() => fromChat({ tools, tool_choice }))).toBe(converted)
  })
})

describe('calls of earlier turns without tools', () => {
  const messages = [user('q'), assistant(null, { tool_calls: [call('a', 'f'), call('b', 'f')] })]
  const answered = [...messages, toolMessage('a', '1'), toolMessage('b', '2')]

  it('offers the tools that were called, which may not be called again', () => {
    const { tools, tool_choice } = fromChat({ messages: answered })
    expect(tools).toEqual([
      {
        name: 'f',
        description: 'Was used earlier and cannot be called any more.',
        input_schema: { type: 'object' },
      },
    ])
    expect(tool_choice).toEqual({ type: 'none' })
  })

  it('leaves a web search to be chosen', () => {
    const { tools, tool_choice } = fromChat({ messages: answered, web_search_options: {} })
    expect(listOf(tools).map(({ name }) => name)).toEqual(['f', 'web_search'])
    expect(tool_choice).toBeUndefined()
  })
})

describe('web search', () => {
  it.each<[Json, Json]>([
    [{}, {}],
    [{ search_context_size: 'high' }, {}],
    [{ user_location: null }, {}],
    [
      {
        user_location: { type: 'approximate', approximate: { city: 'Bath', country: 'GB', planet: 'Earth' } },
      },
      { user_location: { type: 'approximate', city: 'Bath', country: 'GB' } },
    ],
  ])('is the server tool: %j', (web_search_options, more) => {
    expect(fromChat({ web_search_options }).tools).toEqual([
      { type: 'web_search_20250305', name: 'web_search', max_uses: 5, ...more },
    ])
  })

  it('stands beside functions, but not beside one of its name', () => {
    const names = (name: string) =>
      listOf(fromChat({ tools: [functionTool(name)], web_search_options: {} }).tools).map((tool) => tool.name)
    expect(names('f')).toEqual(['f', 'web_search'])
    expect(refusal(() => names('web_search'))).toBe(
      'web_search_options: cannot be used beside a tool named web_search.',
    )
  })
})

describe('tools of the messages protocol for chat completions', () => {
  const closed = (required: string[]) => ({
    type: 'object',
    properties: { a: { type: 'string' } },
    required,
    additionalProperties: false,
  })

  it.each<[Json, Json]>([
    [{}, { parameters: EMPTY }],
    [
      { type: 'custom', description: 'd', input_schema: closed([]) },
      { description: 'd', parameters: closed([]) },
    ],
    [{ type: null, input_schema: closed([]) }, { parameters: closed([]) }],
    [
      { strict: true, input_schema: closed(['a']) },
      { parameters: closed(['a']), strict: true },
    ],
    [{ strict: true, input_schema: closed([]) }, { parameters: closed([]) }],
    [
      {
        cache_control: { type: 'ephemeral' },
        defer_loading: true,
        eager_input_streaming: true,
        input_examples: [{}],
        allowed_callers: ['direct'],
      },
      { parameters: EMPTY },
    ],
  ])('%j', (members, said) => {
    expect(fromMessages({ tools: [{ name: 'f', ...members }] }).tools).toEqual([
      { type: 'function', function: { name: 'f', ...said } },
    ])
  })

  it.each([
    'web_search_20250305',
    'bash_20250124',
    'computer_toolset_20260801',
    'tool_search_tool_bm25_20251119',
  ])('refuses %s', (type) => {
    expect(refusal(() => fromMessages({ tools: [{ name: 'f' }, { type, name: 'x' }] }))).toBe(
      `tools.1: tools of type ${type} are not supported by this model.`,
    )
  })

  it.each<[Json | undefined, unknown, unknown]>([
    [undefined, undefined, undefined],
    [{ type: 'auto' }, 'auto', undefined],
    [{ type: 'any' }, 'required', undefined],
    [{ type: 'none' }, 'none', undefined],
    [{ type: 'tool', name: 'f' }, { type: 'function', function: { name: 'f' } }, undefined],
    [{ type: 'auto', disable_parallel_tool_use: true }, 'auto', false],
    [{ type: 'any', disable_parallel_tool_use: false }, 'required', undefined],
    [{ type: 'none', disable_parallel_tool_use: true }, 'none', undefined],
  ])('chooses %j', (tool_choice, choice, parallel) => {
    const request = fromMessages({ tools: [{ name: 'f' }], tool_choice })
    expect([request.tool_choice, request.parallel_tool_calls]).toEqual([choice, parallel])
  })

  it('has nothing to choose without tools', () => {
    const request = fromMessages({
      tools: [],
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    })
    expect(Object.keys(request).filter((name) => name.includes('tool'))).toEqual([])
  })
})

describe('names of tools', () => {
  it.each(['f', 'a-b_C1', 'x'.repeat(64)])('stay when they are usable: %s', (name) => {
    expect(usableToolName(name)).toBe(name)
  })

  it.each([LONG, 'functions.look', 'schön', 'x'.repeat(65), ''])(
    'are shortened, each to its own: %s',
    (name) => {
      expect(usableToolName(name)).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
      expect(usableToolName(name)).toBe(usableToolName(name))
      expect(usableToolName(`${name}.`)).not.toBe(usableToolName(name))
    },
  )

  it('are the same in tools, choices and calls, and can be restored', () => {
    const asked = {
      tools: [{ name: LONG, input_schema: EMPTY }, { name: 'f' }],
      tool_choice: { type: 'tool', name: LONG },
    }
    const messages = [
      user('q'),
      assistant([{ type: 'tool_use', id: 'a', name: LONG, input: {} }]),
      user([{ type: 'tool_result', tool_use_id: 'a', content: 'r' }]),
    ]
    const request = fromMessages({ ...asked, messages })
    const converted = usableToolName(LONG)
    expect(objectOf(listOf(request.tools)[0]?.function).name).toBe(converted)
    expect(request.tool_choice).toEqual({ type: 'function', function: { name: converted } })
    expect(objectOf(listOf(listOf(request.messages)[1]?.tool_calls)[0]?.function).name).toBe(converted)
    expect([...originalToolNames(asked)]).toEqual([[converted, LONG]])
  })

  it('are restored for chat callers too', () => {
    const asked = {
      tools: [functionTool('functions.look')],
      tool_choice: { type: 'function', function: { name: 'functions.look' } },
    }
    const converted = usableToolName('functions.look')
    expect(fromChat(asked)).toMatchObject({
      tools: [{ name: converted }],
      tool_choice: { type: 'tool', name: converted },
    })
    expect([...originalToolNames(asked)]).toEqual([[converted, 'functions.look']])
    expect(originalToolNames({}).size).toBe(0)
  })
})

describe('reasoning beside tools on chat completions', () => {
  const asked = { thinking: { type: 'enabled', budget_tokens: 9000 } }
  const tools = [{ name: 'f' }]
  const modern = target('reasoning', 'tools_without_reasoning')

  it('is turned off where the vendor refuses both', () => {
    expect(fromMessages({ ...asked, tools }, modern).reasoning_effort).toBe('none')
    expect(fromMessages({ tools }, modern).reasoning_effort).toBe('none')
    expect(fromMessages(asked, modern).reasoning_effort).toBe('high')
    expect(fromMessages({ ...asked, tools }, target('reasoning')).reasoning_effort).toBe('high')
  })
})
