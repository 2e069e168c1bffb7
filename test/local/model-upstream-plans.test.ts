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
