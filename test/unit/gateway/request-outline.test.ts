import { describe, expect, it } from 'vitest'
import { chatCompletions, completions } from '../../../src/gateway/protocols/chat-completions.ts'
import { countTokens, messages } from '../../../src/gateway/protocols/messages.ts'
import { responses } from '../../../src/gateway/protocols/responses.ts'
import { drained } from '../../../src/lib/slices.ts'
import { chat, outline, refusal } from './outlining.ts'

const encoder = new TextEncoder()
const NOT_BOOLEAN = ['x', 1, {}, []]
const NOT_NUMBER = ['1', true, {}, []]

describe('every body', () => {
  it.each([
    ['', 'The body is not valid JSON: unexpected end at byte 0.'],
    ['{', 'The body is not valid JSON: expected a member name at byte 1.'],
    ['{"model":"m"', 'The body is not valid JSON: expected a comma or the end at byte 12.'],
    ['\ufeff{}', 'The body is not valid JSON: unexpected character at byte 0.'],
    ['{} {}', 'The body is not valid JSON: unexpected text after the JSON value at byte 3.'],
    [`{"a":${'['.repeat(256)}`, 'The body is nested too deeply (at most 256 levels) at byte 260.'],
    ['[]', 'The body must be a JSON object.'],
    ['"text"', 'The body must be a JSON object.'],
    ['null', 'The body must be a JSON object.'],
    ['1', 'The body must be a JSON object.'],
    ['{}', 'model is required and must be a string.'],
    ['{"model":null}', 'model is required and must be a string.'],
    ['{"model":7}', 'model is required and must be a string.'],
    ['{"model":{"id":"m"}}', 'model is required and must be a string.'],
    ['{"model":""}', 'model must not be empty.'],
    [`{"model":"${'m'.repeat(257)}"}`, 'model is too long (at most 256 characters).'],
    [`{"model":"${'m'.repeat(100_000)}"}`, 'model is too long (at most 256 characters).'],
    ['{"model":"m","model":"m"}', 'The member model is given twice.'],
    ['{"model":"m","\\u006dodel":"other"}', 'The member model is given twice.'],
    ['{"x":1,"model":"m","x":2}', 'The member x is given twice.'],
    ['{"__proto__":1,"model":"m","__proto__":2}', 'The member __proto__ is given twice.'],
  ])('%j: %s', (body, expected) => {
    for (const protocol of [chatCompletions, messages, countTokens, completions]) {
      expect(refusal(protocol, body)).toBe(expected)
    }
  })

  it.each([
    [
      '{"model":"m","stream_options":{"include_usage":false,"include_usage":true}}',
      'The member stream_options.include_usage is given twice.',
    ],
    [
      '{"model":"m","stream_options":{"include_usage":true,"\\u0049nclude_usage":false}}',
      'The member stream_options.include_usage is given twice.',
    ],
    [
      '{"model":"m","stream_options":{"Include_usage":false}}',
      'The member stream_options.include_usage must be written in lower case.',
    ],
    [
      '{"model":"m","response_format":{"type":"json_object","type":"text"}}',
      'The member response_format.type is given twice.',
    ],
  ])('%j: %s', (body, expected) => {
    expect(refusal(chatCompletions, body)).toBe(expected)
  })

  it('is UTF-8, to its last byte', () => {
    const good = encoder.encode(chat({ user: 'é漢\u{1f600}' }))
    expect(outline(chatCompletions, good).model).toBe('m')
    const broken = [
      [0xff],
      [0xc3],
      [0xe6, 0xbc],
      [0xf0, 0x9f, 0x98],
      [0xc0, 0x80],
      [0xed, 0xa0, 0x80],
      [0x80],
    ]
    const [head = '', tail = ''] = chat({ user: '|' }).split('|')
    for (const bytes of broken) {
      // Once alone, once across the border between two blocks of the check.
      for (const filling of ['', 'x'.repeat(65_535 - head.length)]) {
        const body = Buffer.concat([Buffer.from(head + filling), Buffer.from(bytes), Buffer.from(tail)])
        expect(refusal(chatCompletions, body)).toBe('The body is not valid UTF-8.')
      }
    }
  })

  it('may hold unpaired surrogates, which are UTF-8 while they are escaped', () => {
    expect(refusal(chatCompletions, chat({}).replace('"hi"', '"\\ud800"'))).toBe('accepted')
  })

  it('has a bounded number of members', () => {
    const many = (count: number) =>
      chat(Object.fromEntries(Array.from({ length: count }, (_, index) => [`x${index}`, 1])))
    expect(refusal(chatCompletions, many(998))).toBe('accepted')
    expect(refusal(chatCompletions, many(999))).toBe('The body has too many members.')
  })

  it('has members by kind and place', () => {
    const body = ' { "model" : "m" , "messages":[{"role":"user"}],"\\u0078":1}'
    const { members } = outline(chatCompletions, body)
    expect(members.map(({ name, kind, start, end }) => [name, kind, body.slice(start, end)])).toEqual([
      ['model', 'string', '"m"'],
      ['messages', 'array', '[{"role":"user"}]'],
      ['x', 'number', '1'],
    ])
    expect(members.map(({ memberStart }) => body.slice(memberStart, memberStart + 3))).toEqual([
      '"mo',
      '"me',
      '"\\u',
    ])
  })
})

describe('chat completions', () => {
  it.each<[string, unknown[], string]>([
    ['stream', NOT_BOOLEAN, 'stream must be a boolean.'],
    ['stream_options', ['x', 1, [], true], 'stream_options must be an object.'],
    ['temperature', NOT_NUMBER, 'temperature must be a number.'],
    ['top_p', NOT_NUMBER, 'top_p must be a number.'],
    ['frequency_penalty', NOT_NUMBER, 'frequency_penalty must be a number.'],
    ['presence_penalty', NOT_NUMBER, 'presence_penalty must be a number.'],
    ['max_tokens', [...NOT_NUMBER, 1.5], 'max_tokens must be an integer.'],
    ['max_tokens', [0, -1], 'max_tokens must be a positive integer.'],
    ['max_completion_tokens', [...NOT_NUMBER, 0.5], 'max_completion_tokens must be an integer.'],
    ['max_completion_tokens', [0, -3], 'max_completion_tokens must be a positive integer.'],
    ['n', [...NOT_NUMBER, 1.5], 'n must be an integer.'],
    ['n', [0, -1], 'n must be a positive integer.'],
    ['seed', [...NOT_NUMBER, 1.5], 'seed must be an integer.'],
    ['stop', [1, true, {}, [1], ['x', null]], 'stop must be a string or an array of strings.'],
    ['tools', ['x', 1, {}, true], 'tools must be an array.'],
    ['tool_choice', [1, true, []], 'tool_choice must be a string or an object.'],
    ['user', [1, {}, []], 'user must be a string.'],
    ['logprobs', ['x', 1, []], 'logprobs must be a boolean or an object.'],
    ['response_format', [{}, { type: 1 }, { type: {} }], 'response_format.type must be a string.'],
  ])('%s of %j: %s', (name, values, expected) => {
    for (const value of values) expect(refusal(chatCompletions, chat({ [name]: value }))).toBe(expected)
  })

  it.each([
    ['response_format', 'json', /^response_format: .*expected object/],
    ['stream_options', { include_usage: 'yes' }, /^stream_options\.include_usage: .*expected boolean/],
  ])('%s of %j names the place', (name, value, expected) => {
    expect(refusal(chatCompletions, chat({ [name]: value }))).toMatch(expected)
  })

  it('takes every member as null or absent', () => {
    const names =
      'stream stream_options temperature max_tokens max_completion_tokens n top_p frequency_penalty presence_penalty stop tools tool_choice response_format user seed logprobs'
    const nulls = Object.fromEntries(names.split(' ').map((name) => [name, null]))
    expect(outline(chatCompletions, chat(nulls))).toMatchObject({
      model: 'm',
      stream: false,
      usageRequested: false,
      maximumOutput: null,
      choices: 1,
      images: 0,
      documents: 0,
    })
  })

  it('takes what the interface lists, and members it does not know', () => {
    const body = chat({
      stream: true,
      stream_options: { include_usage: true, extra: [1] },
      temperature: 0.5,
      max_tokens: 10,
      top_p: 1,
      frequency_penalty: -2,
      presence_penalty: 0,
      stop: ['a', 'b'],
      tools: [{ type: 'function', function: { name: 'f', parameters: {} } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: {} } },
      user: 'u',
      seed: -5,
      logprobs: true,
      reasoning_effort: 'low',
      verbosity: { any: ['thing'] },
    })
    expect(outline(chatCompletions, body)).toMatchObject({
      stream: true,
      usageRequested: true,
      maximumOutput: 10,
    })
    expect(refusal(chatCompletions, chat({ stop: 'x', tool_choice: 'auto', logprobs: {} }))).toBe('accepted')
    expect(outline(chatCompletions, chat({}).replace(/}$/, ',"max_tokens":1e2}')).maximumOutput).toBe(100)
  })

  it('checks large members by what their rules read, and passes their insides', () => {
    const large = 'x'.repeat(300_000)
    const format = { type: 'json_schema', json_schema: { schema: { description: large } } }
    expect(refusal(chatCompletions, chat({ response_format: format }))).toBe('accepted')
    const wrong = { json_schema: { type: large }, type: 1 }
    expect(refusal(chatCompletions, chat({ response_format: wrong }))).toBe(
      'response_format.type must be a string.',
    )
    expect(refusal(chatCompletions, chat({ stop: [large], user: large, tools: [large] }))).toBe('accepted')
    expect(refusal(chatCompletions, chat({ user: [large] }))).toBe('user must be a string.')
  })

  it.each([
    ['the one limit', { max_tokens: 7 }, 7],
    ['the newer limit', { max_completion_tokens: 8 }, 8],
    ['the larger of both, whichever it is', { max_tokens: 7, max_completion_tokens: 8 }, 8],
    ['the larger of both, whichever it is', { max_tokens: 9, max_completion_tokens: 8 }, 9],
    ['nothing', {}, null],
  ])('bounds its output by %s', (_name, members, expected) => {
    expect(outline(chatCompletions, chat(members)).maximumOutput).toBe(expected)
  })

  it('counts choices, images and documents, however their types are spelled', () => {
    const content = [
      { type: 'text', text: 'image_url' },
      { type: 'image_url', image_url: { url: 'https://a.example/x.png' } },
      { type: 'input_audio', input_audio: { data: '' } },
      { type: 'file', file: { file_id: 'f' } },
      { type: 'video_url', video_url: { url: 'https://a.example/x.mp4' } },
    ]
    const body = chat({ n: 3, messages: [{ role: 'user', content }] })
    expect(outline(chatCompletions, body)).toMatchObject({ choices: 3, images: 2, documents: 2 })
    const escaped = [...'image_url'].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join('')
    expect(outline(chatCompletions, body.replace('"type":"image_url"', `"type":"${escaped}"`)).images).toBe(2)
    expect(
      outline(chatCompletions, body.replace('"type":"image_url"', '"\\u0074ype":"image_url"')).images,
    ).toBe(2)
  })
})

describe('completions', () => {
  const completion = (members: object) => JSON.stringify({ model: 'm', prompt: 'p', ...members })

  it('need a prompt, and no messages', () => {
    expect(refusal(completions, '{"model":"m"}')).toBe('prompt is required.')
    expect(refusal(completions, completion({ prompt: null }))).toBe('accepted')
    expect(refusal(completions, completion({ messages: 'anything' }))).toBe('accepted')
    expect(refusal(completions, completion({ max_tokens: 0 }))).toBe('max_tokens must be a positive integer.')
    expect(refusal(completions, completion({ best_of: 1.5 }))).toBe('best_of must be an integer.')
  })

  it.each([
    ['one text', {}, 1],
    ['token ids', { prompt: [1, 2, 3] }, 1],
    ['several texts', { prompt: ['a', 'b', 'c'] }, 3],
    ['several lists of token ids', { prompt: [[1], [2]] }, 2],
    ['choices', { n: 2 }, 2],
    ['hidden choices', { n: 2, best_of: 5 }, 5],
    ['choices of several texts', { prompt: ['a', 'b'], n: 3 }, 6],
    ['no text', { prompt: [] }, 1],
  ])('generate for %s', (_name, members, choices) => {
    expect(outline(completions, completion(members)).choices).toBe(choices)
  })

  it('generate up to the model’s maximum by default', () => {
    expect(outline(completions, completion({})).maximumOutput).toBeNull()
    expect(outline(completions, completion({ max_tokens: 900 })).maximumOutput).toBe(900)
  })
})

describe('turns of responses', () => {
  const turn = (members: object) => JSON.stringify({ model: 'm', stream: true, input: [], ...members })

  it('are always streams, of a list of items', () => {
    expect(refusal(responses, '{"stream":true,"input":[]}')).toBe('model is required and must be a string.')
    expect(refusal(responses, '{"model":"m","stream":true}')).toBe('input is required and must be an array.')
    expect(refusal(responses, turn({ input: 'Hi' }))).toBe('input is required and must be an array.')
    expect(refusal(responses, turn({ stream: null }))).toBe('stream must be true.')
    expect(refusal(responses, turn({ max_output_tokens: 1.5 }))).toBe('max_output_tokens must be an integer.')
    expect(refusal(responses, turn({ Model: 'n' }))).toBe('The member model must be written in lower case.')
  })

  it('are known by what bounds their cost', () => {
    const parts = [
      { type: 'input_image' },
      { type: 'input_file' },
      { type: 'input_text', text: 'input_image' },
    ]
    const input = [
      { type: 'message', role: 'user', content: parts },
      { output: parts.slice(0, 1), type: 'function_call_output' },
      { type: 'custom_tool_call_output', output: 'x' },
    ]
    const known = outline(responses, turn({ input, max_output_tokens: 9, tools: [{ type: 'web_search' }] }))
    expect(known).toMatchObject({ images: 2, documents: 1, maximumOutput: 9, choices: 1, hasTools: true })
    expect([...known.toolMessages]).toEqual([1, 2])
    expect(outline(responses, turn({}))).toMatchObject({ maximumOutput: null, hasTools: false })
  })
})

describe('names in another spelling', () => {
  it.each(['Model', 'MODEL', 'Max_Tokens', 'Messages', 'Metadata', 'ſtream', 'Stream_options'])(
    '%s is refused: an upstream may read it as ours',
    (name) => {
      const body = new TextEncoder().encode(
        JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], [name]: 'other' }),
      )
      expect(() => drained(chatCompletions.outline(body))).toThrow('must be written in lower case')
    },
  )
})
