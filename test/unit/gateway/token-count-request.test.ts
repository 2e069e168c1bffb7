import { get_encoding } from 'tiktoken'
import { describe, expect, it } from 'vitest'
import { countInputTokens } from '../../../src/gateway/token-count/input-tokens.ts'
import { JsonSyntaxError } from '../../../src/lib/json-visitor.ts'
import { SAMPLES } from './token-count-samples.ts'
import { TRUE_COUNTS } from './token-count-truths.ts'

const reference = get_encoding('o200k_base')
const truth = (...texts: string[]): number =>
  texts.reduce((sum, text) => sum + reference.encode_ordinary(text).length, 0)

type Body = Record<string, unknown>
const count = (body: Body, upstreamModel = 'gpt-4o'): number =>
  countSource(JSON.stringify(body), upstreamModel)
const countSource = (body: string, upstreamModel = 'gpt-4o'): number =>
  countInputTokens(new TextEncoder().encode(body), { upstreamModel })
const said = (content: unknown): Body => ({ messages: [{ role: 'user', content }] })
/** What a request gains by one content block. */
const gain = (block: unknown, upstreamModel = 'gpt-4o'): number =>
  count(said([{ type: 'text', text: 'x' }, block]), upstreamModel) -
  count(said([{ type: 'text', text: 'x' }]), upstreamModel)

/** The vendor's rule: https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken */
const PER_MESSAGE = 4
const ANSWER = 3

describe('messages of an OpenAI model', () => {
  it('count as the vendor says', () => {
    expect(count(said('hi'))).toBe(8)
    const body = {
      system: SAMPLES.english,
      messages: turns(['hi', 'Hello! How can I help?', 'tell me more']),
    }
    const expected = truth(SAMPLES.english ?? '', 'hi', 'Hello! How can I help?', 'tell me more')
    expect(count(body)).toBe(expected + 4 * PER_MESSAGE + ANSWER)
  })

  it('count the same in blocks and in texts', () => {
    const blocks = said([{ type: 'text', text: SAMPLES.german, cache_control: { type: 'ephemeral' } }])
    expect(count(blocks)).toBe(count(said(SAMPLES.german)))
    const system = [{ type: 'text', text: SAMPLES.python }]
    expect(count({ system, ...said('hi') })).toBe(count({ system: SAMPLES.python, ...said('hi') }))
  })

  it.each(Object.entries(SAMPLES))('are within a tenth above the truth: %s', (_name, text) => {
    const contents = turns([text, `${text}\n${text}`, 'And now?'])
    const expected = truth(text, `${text}\n${text}`, 'And now?') + 3 * PER_MESSAGE + ANSWER
    for (const body of [
      JSON.stringify({ messages: contents }),
      JSON.stringify({ messages: contents }, null, 4),
    ]) {
      expect(countSource(body)).toBeGreaterThanOrEqual(expected)
      expect(countSource(body)).toBeLessThanOrEqual(expected * 1.1)
    }
  })

  it('are read wherever their members stand', () => {
    const source = `{ "messages" : [ {"content":[{"text":"one two three","type":"text"}],"role":"user"} ], "system":"four" }`
    expect(countSource(source)).toBe(truth('one two three', 'four') + 2 * PER_MESSAGE + ANSWER)
  })

  it('of several blocks leave room for what joins them', () => {
    const texts = ['He', 'llo wor', 'ld, how a', 're you?']
    const blocks = texts.map((text) => ({ type: 'text', text }))
    expect(count(said(blocks))).toBeGreaterThanOrEqual(count(said(texts.join(''))))
  })

  it('leave out what is not sent to it', () => {
    const thinking = { type: 'thinking', thinking: SAMPLES.english, signature: 'c2lnbmF0dXJl'.repeat(20) }
    expect(gain(thinking)).toBe(0)
    expect(gain({ type: 'redacted_thinking', data: 'ZGF0YQ=='.repeat(50) })).toBe(0)
    expect(count({ ...said('hi'), metadata: { user_id: SAMPLES.english }, stop_sequences: ['END'] })).toBe(8)
  })
})

const turns = (texts: string[]): Body[] =>
  texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))

/** Requests and what OpenAI charged for them: the cookbook's, and those of https://github.com/hmarr/openai-chat-tokens. */
const CHARGED: Array<[string, Body, number]> = [
  [
    'weather',
    {
      system: 'You are a helpful assistant that can answer to questions about the weather.',
      ...said("What's the weather like in San Francisco?"),
      tools: [
        tool('get_current_weather', 'Get the current weather in a given location', {
          location: { type: 'string', description: 'The city and state, e.g. San Francisco, CA' },
          unit: {
            type: 'string',
            description: 'The unit of temperature to return',
            enum: ['celsius', 'fahrenheit'],
          },
        }),
      ],
    },
    101,
  ],
  ['no input', { ...said('hello'), tools: [tool('foo', undefined, {})] }, 31],
  ['a description', { ...said('hello'), tools: [tool('foo', 'Do a foo', {})] }, 36],
  [
    'a text',
    { ...said('hello'), tools: [tool('bing_bong', 'Do a bing bong', { foo: { type: 'string' } })] },
    49,
  ],
  [
    'two members',
    {
      ...said('hello'),
      tools: [
        tool('bing_bong', 'Do a bing bong', {
          foo: { type: 'string' },
          bar: { type: 'number', description: 'A number' },
        }),
      ],
    },
    57,
  ],
  [
    'an object',
    {
      ...said('hello'),
      tools: [
        tool('bing_bong', 'Do a bing bong', {
          foo: {
            type: 'object',
            properties: { bar: { type: 'string', enum: ['a', 'b', 'c'] }, baz: { type: 'boolean' } },
          },
        }),
      ],
    },
    68,
  ],
]

function tool(name: string, description: string | undefined, properties: Body): Body {
  return { name, description, input_schema: { type: 'object', properties } }
}

describe('tools', () => {
  it.each(CHARGED)('cost what was charged for them, or up to a tenth more: %s', (_name, body, charged) => {
    expect(count(body)).toBeGreaterThanOrEqual(charged)
    expect(count(body)).toBeLessThanOrEqual(charged * 1.1)
  })

  it('count every text of a schema, however deep', () => {
    const deep = { type: 'object', description: SAMPLES.english, properties: { list: { type: 'array' } } }
    const schemas = [
      { value: deep },
      { value: { anyOf: [{ type: 'null' }, deep] } },
      { value: { type: 'array', items: { type: 'object', properties: { inner: deep } } } },
      { value: { type: ['string', 'null'], pattern: SAMPLES.english } },
      { value: { type: 'string', examples: [SAMPLES.english], title: 'A title' } },
      { value: { $ref: '#/$defs/thing', allOf: [{ description: SAMPLES.english }] } },
    ]
    for (const properties of schemas) {
      const body = { ...said('hi'), tools: [tool('search', 'Searches', properties)] }
      expect(count(body)).toBeGreaterThan(truth(SAMPLES.english ?? '') + 8)
    }
  })

  it('of any size are counted, without a tree of the large ones', () => {
    const description = `${SAMPLES.english}\n`.repeat(800)
    const body = { ...said('hi'), tools: [tool('search', description, { q: { type: 'string' } })] }
    const expected = truth(description)
    expect(description.length).toBeGreaterThan(256 * 1_024)
    expect(count(body)).toBeGreaterThanOrEqual(expected)
    expect(count(body)).toBeLessThanOrEqual(expected * 1.1)
  })

  it('cost more where they are shown as JSON', () => {
    const body = {
      ...said('hello'),
      tools: [tool('bing_bong', 'Do a bing bong', { foo: { type: 'string' } })],
    }
    const shown = truth(JSON.stringify(body.tools))
    expect(count(body, 'qwen3-32b') - count(said('hello'), 'qwen3-32b')).toBeGreaterThan(shown + 130)
  })

  it('cost a little when one has to be called', () => {
    const tools = [tool('foo', 'Do a foo', {})]
    const choice = { tool_choice: { type: 'tool', name: 'foo' } }
    expect(count({ ...said('hello'), tools, ...choice })).toBeGreaterThan(count({ ...said('hello'), tools }))
  })

  it('survive definitions that are not what they should be', () => {
    for (const broken of [
      null,
      7,
      'text',
      [],
      {},
      { input_schema: 5 },
      { input_schema: { properties: [1] } },
    ]) {
      expect(count({ ...said('hi'), tools: [broken] })).toBeGreaterThan(8)
    }
  })
})

describe('tool calls and their results', () => {
  const input = {
    command: 'grep -rn "caché" src/ | head',
    paths: ['C:\\temp', 'a/b'],
    limit: 20,
    deep: { ok: true },
  }

  it('count the call as the JSON that is sent', () => {
    const call = { type: 'tool_use', id: 'toolu_01', name: 'run_command', input }
    const sent = truth('run_command', JSON.stringify(input))
    expect(gain(call)).toBeGreaterThanOrEqual(sent)
    expect(gain(call)).toBeLessThanOrEqual(sent + 20)
    const pretty = JSON.stringify(said([call]), null, 2)
      .replace('é', '\\u00e9')
      .replace('a/b', 'a\\/b')
    expect(countSource(pretty)).toBe(count(said([call])))
  })

  it('count results in texts and in blocks', () => {
    const expected = truth(SAMPLES.logs ?? '')
    const asText = { type: 'tool_result', tool_use_id: 'toolu_01', content: SAMPLES.logs }
    const asBlocks = { ...asText, content: [{ type: 'text', text: SAMPLES.logs }], is_error: true }
    for (const block of [asText, asBlocks]) {
      expect(gain(block)).toBeGreaterThanOrEqual(expected + PER_MESSAGE)
      expect(gain(block)).toBeLessThanOrEqual(expected * 1.1)
    }
    expect(gain({ type: 'tool_result', tool_use_id: 'toolu_01' })).toBeGreaterThan(0)
  })

  it('stay within a tenth on a conversation of an agent', () => {
    const messages = Object.entries(SAMPLES).flatMap(([name, text]) => [
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: `t_${name}`, name: 'read_file', input: { path: name } }],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: `t_${name}`, content: text }] },
    ])
    // As the open models write it, the form with the most marks: 13 around a call, 11 around a result.
    const names = Object.keys(SAMPLES)
    const calls = truth(...names.flatMap((name) => ['read_file', JSON.stringify({ path: name })]))
    const expected = truth(...Object.values(SAMPLES)) + calls + names.length * 24 + ANSWER
    expect(count({ messages })).toBeGreaterThanOrEqual(expected)
    expect(count({ messages })).toBeLessThanOrEqual(expected * 1.1)
  })
})

describe('answers of a given form', () => {
  it.each(['output_format', 'output_config'])('count their schema: %s', (member) => {
    const schema = {
      type: 'object',
      properties: { summary: { type: 'string', description: SAMPLES.english } },
    }
    const format = { type: 'json_schema', schema }
    const body = { ...said('hi'), [member]: member === 'output_format' ? format : { effort: 'high', format } }
    expect(count(body)).toBeGreaterThan(8 + truth(JSON.stringify(schema)))
  })
})

describe('models of other families', () => {
  const pairs = Object.entries(TRUE_COUNTS).flatMap(([model, counts]) =>
    Object.entries(counts).map(([sample, tokens]) => [model, sample, tokens] as const),
  )

  it.each(pairs)('%s is never charged more than counted: %s', (model, sample, tokens) => {
    const text = `${SAMPLES[sample]}`
    const around = count(said(''), model)
    expect(count(said(text), model) - around).toBeGreaterThanOrEqual(tokens)
  })

  const EVERYDAY = ['english', 'markdown', 'typescript', 'sql', 'html', 'json', 'logs', 'csv', 'identifiers']
  it.each([
    'gpt-4-turbo',
    'llama-3.3-70b-instruct',
    'qwen2.5-72b-instruct',
    'deepseek-chat',
    'mistral-nemo-2407',
  ])('%s is within a tenth on everyday text, and within a sixth on every kind of it', (model) => {
    const around = count(said(''), model)
    const rows = EVERYDAY.map((sample) => ({
      sample,
      counted: count(said(SAMPLES[sample]), model) - around,
      real: TRUE_COUNTS[model]?.[sample] ?? 0,
    }))
    for (const { sample, counted, real } of rows) {
      expect([sample, counted <= real * 1.16]).toEqual([sample, true])
    }
    const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0)
    expect(sum(rows.map((row) => row.counted))).toBeLessThanOrEqual(sum(rows.map((row) => row.real)) * 1.1)
  })

  it('counts unknown models as high as any current one', () => {
    for (const text of Object.values(SAMPLES)) {
      for (const model of [
        'gpt-4o',
        'llama-3.3-70b',
        'qwen3-32b',
        'deepseek-chat',
        'gemini-2.5-pro',
        'ministral-8b',
      ]) {
        expect(count(said(text), 'house-model')).toBeGreaterThanOrEqual(count(said(text), model))
      }
    }
  })

  it.each([
    ['openai/gpt-4o-mini', 'gpt-4o'],
    ['GPT-4.1-nano', 'gpt-4o'],
    ['gpt-35-turbo', 'gpt-4'],
    ['gpt-4-1106-preview', 'gpt-4'],
    ['gpt-4-32k', 'gpt-4'],
    ['openai/o3', 'gpt-5.4'],
    ['accounts/fireworks/models/llama-v3p1-405b-instruct', 'llama-3.3-70b'],
    ['anthropic/claude-sonnet-4.5', 'claude-opus-4-20250514'],
    ['anthropic/claude-opus-4.7', 'claude-opus-5'],
    ['models/gemini-3-pro', 'gemma-3-27b'],
    ['deepseek-ai/DeepSeek-V3.2', 'deepseek-chat'],
    ['Qwen/Qwen3-235B-A22B', 'qwen-max'],
    ['open-mixtral-8x22b', 'mistral-7b'],
  ])('knows the family of %s', (name, other) => {
    const body = said(Object.values(SAMPLES).join('\n'))
    expect(count(body, name)).toBe(count(body, other))
    expect(count(body, name)).not.toBe(count(body, 'house-model'))
  })
})

describe('a body', () => {
  it('that is not JSON is refused', () => {
    expect(() => countSource('{"messages":[')).toThrow(JsonSyntaxError)
  })

  it('with members of other kinds than they should have is counted all the same', () => {
    for (const messages of [
      null,
      5,
      'text',
      {},
      [null],
      [5],
      [{}],
      [{ content: 5 }],
      [{ content: [[], 1, null] }],
    ]) {
      expect(count({ messages, system: 5, tools: {}, output_config: 5 })).toBeGreaterThan(0)
    }
    const odd = [
      { type: 'image' },
      { type: 'image', source: { type: 'base64', data: 5 } },
      { type: 'document', source: 'text' },
      { type: 'tool_use', input: 'text' },
      { type: 'tool_result', content: { a: 1 } },
      { type: 5 },
      {},
    ]
    expect(count(said(odd))).toBeGreaterThan(0)
  })

  it('of any number of tools is counted', () => {
    const tools = Array.from({ length: 3_000 }, (_, index) => tool(`tool_${index}`, 'Does it', {}))
    const some = count({ ...said('hi'), tools: tools.slice(0, 1_500) })
    expect(count({ ...said('hi'), tools })).toBeGreaterThan(some * 1.9)
  })

  it('of deep nesting is counted', () => {
    let block: Body = { type: 'text', text: 'bottom' }
    for (let depth = 0; depth < 60; depth++) block = { type: 'tool_result', content: [block] }
    expect(count(said([block]))).toBeGreaterThan(8)
  })
})
