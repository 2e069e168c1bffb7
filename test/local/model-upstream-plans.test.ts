import { describe, expect, it } from 'vitest'
import { chat, post, useUpstream } from './model-upstream-harness.ts'

useUpstream()

type Json = Record<string, unknown>

const messages = (text: string, more: Json = {}) => post('/v1/messages', text, more)

async function saidByChat(text: string, more: Json = {}): Promise<string> {
  const { choices } = (await (await chat(text, more)).json()) as {
    choices: { message: { content: string | null; tool_calls?: { function: { name: string } }[] } }[]
  }
  const message = choices[0]?.message
  return message?.tool_calls?.map((call) => call.function.name).join(' ') ?? message?.content ?? ''
}

async function saidByMessages(text: string, more: Json = {}): Promise<string> {
  const { content } = (await (await messages(text, more)).json()) as {
    content: { type: string; text?: string; name?: string }[]
  }
  return content.map((block) => block.text ?? block.name).join(' ')
}

const prompt = (system: string, text: string) => ({
  messages: [
    { role: 'system', content: system },
    { role: 'user', content: text },
  ],
})

describe('a system prompt that asks for JSON', () => {
  const schema = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] }
  const wanted: [string, string, unknown][] = [
    ['an object', 'Be brief. Answer with exactly one JSON object.', { answer: 'hello' }],
    ['any JSON', 'Respond only in JSON', { answer: 'hello' }],
    ['a schema', `Return one JSON value that fits this:\n\n${JSON.stringify(schema)}`, { count: 1 }],
  ]

  it.each(wanted)('gets it: %s', async (_what, system, expected) => {
    expect(JSON.parse(await saidByMessages('hello', { system }))).toEqual(expected)
    const blocks = system.split('. ').map((text) => ({ type: 'text', text }))
    expect(JSON.parse(await saidByMessages('hello', { system: blocks }))).toEqual(expected)
    expect(JSON.parse(await saidByChat('', prompt(system, 'hello')))).toEqual(expected)
  })

  it('is one that says so, not one that speaks of JSON', async () => {
    const system = 'You read files. Some hold a JSON object. You may return early.'
    expect(await saidByMessages('hello', { system })).toMatch(/^Hello! You said/)
    expect(await saidByChat('', prompt(system, 'hello'))).toMatch(/^Hello! You said/)
  })
})

describe('tools that are offered', () => {
  const names = ['get_weather', 'lookupOrder', 'read_file', 'Bash']
  const parameters = { type: 'object' }
  const ofChat = { tools: names.map((name) => ({ type: 'function', function: { name, parameters } })) }
  const ofMessages = { tools: names.map((name) => ({ name, input_schema: parameters })) }

  it.each([
    ['What is the weather in Paris?', 'get_weather'],
    ['Where is my order?', 'lookupOrder'],
    ['The weather where my order is', 'get_weather lookupOrder'],
  ])('are called where the user speaks of what they are named for: %s', async (text, called) => {
    expect(await saidByChat(text, ofChat)).toBe(called)
    expect(await saidByMessages(text, ofMessages)).toBe(called)
  })

  it.each(['I read it', 'What is bash?', 'Whether or not'])('are left alone else: %s', async (text) => {
    expect(await saidByChat(text, ofChat)).toMatch(/^Hello! You said/)
    expect(await saidByMessages(text, ofMessages)).toMatch(/^Hello! You said/)
  })

  it('are called one at a time when parallel calls are off, and not at all when the choice says so', async () => {
    const text = 'The weather where my order is'
    expect(await saidByChat(text, { ...ofChat, parallel_tool_calls: false })).toBe('get_weather')
    expect(await saidByMessages(text, { ...ofMessages, tool_choice: { type: 'none' } })).toMatch(/^Hello!/)
  })
})

describe('instructions', () => {
  const tools = {
    write_file: { path: { type: 'string' }, content: { type: 'string' } },
    list_tickets: {
      status: { type: 'array', items: { type: 'string' } },
      limit: { type: ['integer', 'null'] },
    },
  }
  const schemas = Object.entries(tools).map(([name, properties]) => ({
    name,
    schema: { type: 'object', properties, required: Object.keys(properties) },
  }))
  const ofChat = schemas.map(({ name, schema: parameters }) => ({
    type: 'function',
    function: { name, parameters },
  }))
  const ofMessages = schemas.map(({ name, schema }) => ({ name, input_schema: schema }))

  /** Name and arguments of each call, on both protocols. */
  async function calls(text: string): Promise<[string, unknown][]> {
    const completion = (await (await chat(text, { tools: ofChat })).json()) as {
      choices: { message: { tool_calls: { function: { name: string; arguments: string } }[] } }[]
    }
    const called = completion.choices[0]?.message.tool_calls ?? []
    const message = (await (await messages(text, { tools: ofMessages })).json()) as {
      content: { name: string; input: unknown }[]
    }
    const used = message.content.map(({ name, input }): [string, unknown] => [name, input])
    expect(called.map(({ function: { name, arguments: json } }) => [name, JSON.parse(json)])).toEqual(used)
    return used
  }

  it('name the tools that are called, with their arguments', async () => {
    const list = 'Then call `list_tickets`.\nstatus: ["open"]\nlimit: null\n\nBe brief about files.'
    expect(await calls(list)).toEqual([['list_tickets', { status: ['open'], limit: null }]])
    expect(await calls('Please call `list_tickets`.')).toEqual([
      ['list_tickets', { status: ['example'], limit: 1 }],
    ])
    const content = '# Title'
    expect(await calls('Call `write_file`.\npath: a.md\ncontent: # Title\n')).toEqual([
      ['write_file', { path: 'a.md', content }],
    ])
    expect(await calls('Call `write_file`.\npath: a.md\ncontent: # Title\n\nTwo lines')).toEqual([
      ['write_file', { path: 'a.md', content: `${content}\n\nTwo lines` }],
    ])
    expect(await calls(`${list}\nAnd call \`write_file\`.\npath: b.md\ncontent: ${content}`)).toEqual([
      ['list_tickets', { status: ['open'], limit: null }],
      ['write_file', { path: 'b.md', content }],
    ])
  })

  it('say what is made of a result, whose marks are left out', async () => {
    const text = 'Call `list_tickets`, then answer with one line for each of `tickets`: `id`, `title`.'
    const answer = (content: string, user = text) =>
      saidByChat('', {
        messages: [
          { role: 'user', content: user },
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'c', type: 'function', function: { name: 'list_tickets', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: 'c', content },
        ],
        tools: ofChat,
      })
    const data = JSON.stringify({ tickets: [{ id: 1, title: 'One', text: 'x' }, { id: 2 }] })
    const marked = `Data, between two lines.\n<<<untrusted 0123ab\n${data}\n0123ab untrusted>>>`
    expect(await answer(data)).toBe('- 1, One\n- 2, ')
    expect(await answer(marked)).toBe('- 1, One\n- 2, ')
    expect(await answer('no JSON')).toContain('"no JSON"')
    expect(await answer(marked, 'Call `list_tickets`.')).toContain(`"${data}"`)
    expect(
      await saidByMessages('', {
        messages: [
          { role: 'user', content: text },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'list_tickets', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: marked }] },
        ],
        tools: ofMessages,
      }),
    ).toBe('- 1, One\n- 2, ')
  })
})

describe('names that every object has', () => {
  it.each(['constructor', 'toString', '__proto__'])('%s is a member like any other', async (name) => {
    const parsed = JSON.parse(`{"${name}":{"a":1}}`) as Json
    for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
      const answer = await post(path, 'hello', {
        ...parsed,
        max_tokens: path === '/v1/messages' ? 9 : undefined,
      })
      expect([answer.status, await answer.text()]).toEqual([
        400,
        expect.stringContaining(`${name}: Extra inputs`),
      ])
    }
    expect((await post('/v1/chat/completions', 'hello', parsed)).status).toBe(200)
  })

  it('are types and formats of a schema like any other', async () => {
    const format = { type: 'json_schema', schema: { type: 'constructor' } }
    expect((await messages('hello', { output_config: { format } })).status).toBe(200)
    const parameters = {
      type: 'object',
      properties: { a: { type: 'string', format: 'constructor' } },
      required: ['a'],
    }
    const tools = [{ type: 'function', function: { name: 'f', parameters } }]
    expect((await chat('hello', { tools, tool_choice: 'required' })).status).toBe(200)
  })
})
