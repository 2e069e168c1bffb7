import { describe, expect, it } from 'vitest'
import { isText } from '../../../src/gateway/protocols/text-fields.ts'
import { scanJson } from '../../../src/lib/json-scan.ts'
import type { JsonPath } from '../../../src/lib/json-visitor.ts'

const encoder = new TextEncoder()
const BASE64 = Buffer.alloc(300, 'picture').toString('base64')

/** Whether a string value at a path is text. */
function classified(path: JsonPath, value: string): boolean {
  const contents = encoder.encode(JSON.stringify(value).slice(1, -1))
  // In the middle of other bytes, which must not matter.
  const bytes = encoder.encode(`\ufeff"${' '.repeat(contents.length)}" data:;base64,`)
  bytes.set(contents, 4)
  return isText(path, bytes, 4, 4 + contents.length)
}

/** Strings of a message that are text, by path. */
function textsOf(message: unknown): string[] {
  const bytes = encoder.encode(JSON.stringify(message))
  const texts: string[] = []
  scanJson(bytes, {
    string(path, start, end) {
      if (isText(path, bytes, start, end)) texts.push(path.join('.'))
    },
  })
  return texts
}

/** Paths of all strings whose text begins with a mark: what a reader of the message takes for text. */
function marked(value: unknown, path: Array<string | number> = []): string[] {
  if (typeof value === 'string') return value.startsWith('TEXT') ? [path.join('.')] : []
  if (typeof value !== 'object' || value === null) return []
  const entries = Array.isArray(value) ? value.entries() : Object.entries(value)
  return [...entries].flatMap(([name, member]) => marked(member, [...path, name]))
}

describe('whole messages', () => {
  it.each([
    [
      'a chat request',
      {
        model: 'gpt',
        user: 'TEXT end user',
        stop: ['TEXT one', 'TEXT two'],
        prompt: ['TEXT a prompt'],
        prediction: { type: 'content', content: 'TEXT expected' },
        unknown_member: { nested: ['TEXT of tomorrow'] },
        messages: [
          { role: 'system', content: 'TEXT system' },
          { role: 'developer', content: [{ type: 'text', text: 'TEXT developer' }] },
          {
            role: 'user',
            name: 'TEXT author',
            content: [
              { type: 'text', text: 'TEXT part' },
              { type: 'image_url', image_url: { url: `data:image/png;base64,${BASE64}`, detail: 'low' } },
              { type: 'image_url', image_url: { url: 'TEXT https://a.example/?q=address' } },
              { type: 'input_audio', input_audio: { data: BASE64, format: 'wav' } },
              { type: 'file', file: { filename: 'TEXT name.pdf', file_data: BASE64 } },
              { type: 'file', file: { file_data: `data:application/pdf;base64,${BASE64}` } },
              { type: 'file', file: { file_data: 'TEXT plain contents' } },
            ],
          },
          {
            role: 'assistant',
            content: null,
            refusal: 'TEXT refusal',
            reasoning_content: 'TEXT thoughts',
            audio: { id: 'audio_1' },
            tool_calls: [
              {
                id: 'call_1',
                type: 'function',
                function: { name: 'TEXT tool', arguments: 'TEXT {"id":"7"}' },
              },
              { id: 'call_2', type: 'custom', custom: { name: 'TEXT tool', input: 'TEXT free form' } },
            ],
          },
          { role: 'tool', tool_call_id: 'call_1', content: 'TEXT result' },
          { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'TEXT result part' }] },
        ],
        tools: [
          {
            type: 'function',
            function: {
              name: 'TEXT tool',
              description: 'TEXT description',
              parameters: {
                type: 'TEXT object',
                required: ['TEXT id'],
                title: 'TEXT title',
                properties: {
                  id: { type: 'TEXT string', description: 'TEXT what it is', enum: ['TEXT a'] },
                  model: { default: { role: 'TEXT default' }, format: 'TEXT date' },
                },
                $defs: { type: { description: 'TEXT shared' } },
              },
            },
          },
        ],
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'TEXT schema', schema: { properties: { type: { const: 'TEXT only' } } } },
        },
        web_search_options: { user_location: { approximate: { city: 'TEXT city' } } },
      },
    ],
    [
      'a messages request',
      {
        model: 'claude',
        system: [{ type: 'text', text: 'TEXT system', cache_control: { type: 'ephemeral', ttl: '1h' } }],
        stop_sequences: ['TEXT stop'],
        messages: [
          { role: 'user', content: 'TEXT plain' },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'TEXT thoughts', signature: 'c2ln' },
              {
                type: 'tool_use',
                id: 'toolu_1',
                name: 'TEXT tool',
                input: {
                  type: 'TEXT a kind',
                  id: 'TEXT an id',
                  model: 'TEXT a model',
                  data: `TEXT${BASE64}`,
                  nested: [{ role: 'TEXT role', source: { data: `TEXT${BASE64}` } }],
                },
              },
            ],
          },
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: 'toolu_1',
                content: [
                  { type: 'text', text: 'TEXT result' },
                  { type: 'image', source: { type: 'base64', media_type: 'image/png', data: BASE64 } },
                  { type: 'image', source: { type: 'url', url: 'TEXT https://a.example/' } },
                ],
              },
              { type: 'tool_result', tool_use_id: 'toolu_2', content: 'TEXT result as a string' },
              {
                type: 'document',
                title: 'TEXT title',
                context: 'TEXT context',
                source: { type: 'text', media_type: 'text/plain', data: 'TEXT a plain document' },
              },
              {
                type: 'document',
                source: { type: 'content', content: [{ type: 'text', text: 'TEXT chunk' }] },
              },
              {
                type: 'search_result',
                source: 'TEXT https://b.example',
                title: 'TEXT found',
                content: [{ type: 'text', text: 'TEXT passage' }],
              },
            ],
          },
        ],
        tools: [
          {
            name: 'TEXT tool',
            description: 'TEXT description',
            input_schema: { type: 'TEXT object', properties: { type: { type: 'TEXT string' } } },
          },
        ],
      },
    ],
    [
      'a chat answer',
      {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        model: 'gpt',
        system_fingerprint: 'fp_1',
        service_tier: 'default',
        choices: [
          {
            index: 0,
            finish_reason: 'stop',
            message: {
              role: 'assistant',
              content: 'TEXT answer',
              refusal: 'TEXT no',
              reasoning_content: 'TEXT thoughts',
              audio: { id: 'a', data: BASE64, transcript: 'TEXT spoken' },
              annotations: [
                { type: 'url_citation', url_citation: { url: 'TEXT https://c', title: 'TEXT page' } },
              ],
              tool_calls: [{ id: 'c', type: 'function', function: { name: 'TEXT f', arguments: 'TEXT {}' } }],
            },
            logprobs: { content: [{ token: 'TEXT an', bytes: [97, 110] }] },
          },
        ],
      },
    ],
    [
      'chat chunks',
      [
        {
          object: 'chat.completion.chunk',
          choices: [{ index: 0, delta: { role: 'assistant', content: 'TEXT' } }],
        },
        { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: 'TEXT {' } }] } }] },
        { choices: [{ delta: { refusal: 'TEXT', reasoning: 'TEXT' } }], obfuscation: 'xyz' },
        { choices: [{ text: 'TEXT of a completion', finish_reason: 'length' }] },
      ],
    ],
    [
      'message events',
      [
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'TEXT' } },
        { type: 'content_block_delta', delta: { type: 'input_json_delta', partial_json: 'TEXT {' } },
        { type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'TEXT' } },
        { type: 'content_block_delta', delta: { type: 'signature_delta', signature: 'c2ln' } },
        {
          type: 'content_block_delta',
          delta: {
            type: 'citations_delta',
            citation: { type: 'char_location', cited_text: 'TEXT cited', document_title: 'TEXT title' },
          },
        },
        {
          type: 'content_block_start',
          content_block: { type: 'tool_use', id: 't', name: 'TEXT', input: { id: 'TEXT' } },
        },
        { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: 'TEXT stop' } },
        { type: 'error', error: { type: 'overloaded_error', message: 'TEXT overloaded' } },
      ],
    ],
  ])('%s: every text is shown to the engine, and nothing else', (_name, message) => {
    expect(marked(message).length).toBeGreaterThan(3)
    expect(textsOf(message).sort()).toEqual(marked(message).sort())
  })
})

describe('encoded content', () => {
  it.each<[string, JsonPath, string, boolean]>([
    ['an image', ['source', 'data'], BASE64, false],
    [
      'an image in the URL alphabet',
      ['source', 'data'],
      BASE64.replaceAll('/', '_').replaceAll('+', '-'),
      false,
    ],
    ['a document of words', ['source', 'data'], `${'word '.repeat(40)}`, true],
    ['a document that begins like base64', ['source', 'data'], `${BASE64} and more`, true],
    ['a document that is one short word', ['source', 'data'], '4111111111111111', true],
    ['nothing', ['source', 'data'], '', true],
    ['sound', ['input_audio', 'data'], BASE64, false],
    ['data of another member', ['result', 'data'], BASE64, true],
    ['data in a list', ['content', 0, 'data'], BASE64, true],
    ['a file', ['file', 'file_data'], BASE64, false],
    ['a file as text', ['file', 'file_data'], 'a,b\n1,2', true],
    ['a data URL', ['image_url', 'url'], `data:image/png;base64,${BASE64}`, false],
    [
      'a data URL with parameters',
      ['image_url', 'url'],
      `data:text/plain;charset=utf-8;base64,${BASE64}`,
      false,
    ],
    ['a data URL of plain text', ['image_url', 'url'], 'data:text/plain,4111111111111111', true],
    ['a data URL of text that only speaks of base64', ['url'], 'data:text/plain,x;base64,secret words', true],
    ['an unfinished data URL', ['image_url', 'url'], 'data:', true],
    ['a link', ['image_url', 'url'], 'https://a.example/data:image/png;base64,AAAA', true],
    ['an empty link', ['image_url', 'url'], '', true],
  ])('%s', (_name, path, value, expected) => {
    expect(classified(path, value)).toBe(expected)
  })

  it('is recognized where slashes are escaped', () => {
    const bytes = encoder.encode('ab\\/c'.repeat(30))
    expect(isText(['source', 'data'], bytes, 0, bytes.length)).toBe(false)
  })
})

describe('technical members', () => {
  const technical =
    'model role type id object tool_call_id tool_use_id media_type signature encrypted_content finish_reason stop_reason system_fingerprint service_tier obfuscation ttl detail format'
  it.each(technical.split(' '))('%s is none, except in what a tool is called with or declares', (name) => {
    expect(classified([name], 'x')).toBe(false)
    expect(classified(['messages', 0, name], 'x')).toBe(false)
    expect(classified(['messages', 0, name, 3], 'x')).toBe(false)
    expect(classified(['content', 0, 'input', name], 'x')).toBe(true)
    expect(classified(['parameters', 'properties', name, name], 'x')).toBe(true)
    expect(classified(['messages', 0, `${name}s`], 'x')).toBe(true)
    expect(classified([name, 'description'], 'x')).toBe(true)
  })

  it('a text without any name is text', () => {
    expect(classified([], 'x')).toBe(true)
    expect(classified([0, 1], 'x')).toBe(true)
  })
})
