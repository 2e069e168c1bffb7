import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { assistant, refusal, text, user } from './requests.ts'
import { answers, calls, IMAGE, INLINE_IMAGE, input, item, output, PDF, toMessages } from './responses.ts'

const hi = item('user', 'Hi')
const use = (id: string, name = 'look', given: Json = { a: 1 }): Json => ({
  type: 'tool_use',
  id,
  name,
  input: given,
})
const result = (id: string, ...content: Json[]): Json =>
  content.length === 0
    ? { type: 'tool_result', tool_use_id: id }
    : { type: 'tool_result', tool_use_id: id, content }
const CONTINUE = user([text('(Continue from where you left off.)')])
const HI = user([text('Hi')])
const SO = user([text('So?')])
const so = item('user', 'So?')

describe('items as turns of the messages protocol', () => {
  it.each<[string, Json[], Json[]]>([
    [
      'messages of one role',
      [hi, item('user', [input('there'), input(' ')])],
      [user([text('Hi'), text('there')])],
    ],
    [
      'images',
      [item('user', [IMAGE, INLINE_IMAGE])],
      [
        user([
          { type: 'image', source: { type: 'url', url: IMAGE.image_url } },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        ]),
      ],
    ],
    [
      'files, by URL too',
      [item('user', [PDF, { type: 'input_file', file_url: 'https://a.example/b.pdf' }])],
      [
        user([
          {
            type: 'document',
            title: 'a.pdf',
            source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' },
          },
          { type: 'document', source: { type: 'url', url: 'https://a.example/b.pdf' } },
        ]),
      ],
    ],
    [
      'texts and refusals of the assistant',
      [
        hi,
        item('assistant', [output(' a\n'), { type: 'refusal', refusal: 'No.' }]),
        item('assistant', 'b'),
        so,
      ],
      [HI, assistant([text(' a\n'), text('No.'), text('b')]), SO],
    ],
    [
      'a conversation that ends with the assistant',
      [hi, item('assistant', 'Well')],
      [HI, assistant([text('Well')]), CONTINUE],
    ],
    [
      'a conversation that begins with the assistant',
      [item('assistant', 'Hello.'), so],
      [user([text('(The assistant begins the conversation.)')]), assistant([text('Hello.')]), SO],
    ],
    [
      'calls and their results, wherever they stood',
      [hi, calls('c1'), calls('c2', 'f', ''), answers('c2', [IMAGE, input('x')]), so, answers('c1', '')],
      [
        HI,
        assistant([use('c1'), use('c2', 'f', {})]),
        user([
          result('c1'),
          result('c2', { type: 'image', source: { type: 'url', url: IMAGE.image_url } }, text('x')),
          text('So?'),
        ]),
      ],
    ],
    [
      'ids that the vendor refuses, or that come twice',
      [hi, calls('é'), answers('é'), calls('c'), answers('c'), calls('c'), answers('c')],
      [
        HI,
        assistant([use('call_1')]),
        user([result('call_1', text('found'))]),
        assistant([use('c')]),
        user([result('c', text('found'))]),
        assistant([use('call_2')]),
        user([result('call_2', text('found'))]),
      ],
    ],
    [
      'calls of custom tools, and malformed ones',
      [
        hi,
        { type: 'custom_tool_call', call_id: 'p', name: 'patch', input: '*' },
        calls('c', 'look', '{"cut'),
        { type: 'custom_tool_call_output', call_id: 'p', output: 'ok' },
        answers('c'),
      ],
      [
        HI,
        assistant([use('p', 'patch', { input: '*' }), use('c', 'look', { INVALID_JSON: '{"cut' })]),
        user([result('p', text('ok')), result('c', text('found'))]),
      ],
    ],
  ])('%s', (_case, items, messages) => {
    expect(toMessages({ input: items }).messages).toEqual(messages)
  })

  it('puts all instructions first', () => {
    const converted = toMessages({
      instructions: 'a',
      input: [hi, item('developer', 'b'), item('system', ' ')],
    })
    expect(converted.system).toEqual([text('a'), text('b')])
    expect(converted.messages).toEqual([HI])
  })

  it('sends instructions alone as the user’s', () => {
    const converted = toMessages({ instructions: 'a', input: [] })
    expect([converted.system, converted.messages]).toEqual([undefined, [user([text('a')])]])
  })

  it('offers tools that were called and are not there any more', () => {
    const converted = toMessages({ input: [hi, calls('c'), answers('c')] })
    expect([converted.tools, converted.tool_choice]).toEqual([
      [expect.objectContaining({ name: 'look' })],
      { type: 'none' },
    ])
  })

  it.each<[string, Json, string]>([
    ['nothing said', { input: [] }, 'input: at least one item must have content.'],
    ['blank text alone', { input: [item('user', ' \n')] }, 'input: at least one item must have content.'],
    [
      'an image of another kind',
      { input: [item('user', [{ ...IMAGE, image_url: 'data:image/tiff;base64,AAAA' }])] },
      'input[0].content[0].image_url: images must be JPEG, PNG, GIF or WebP.',
    ],
    [
      'an image by http',
      { input: [hi, calls('c'), answers('c', [{ ...IMAGE, image_url: 'http://a.example/b' }])] },
      'input[2].output[0].image_url: an image must be an https URL or a base64 data URL.',
    ],
    [
      'sound',
      { input: [item('user', [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }])] },
      'input[0].content[0]: parts of type input_audio are not supported by this model.',
    ],
    [
      'a file of another kind',
      { input: [item('user', [{ ...PDF, file_data: 'data:text/csv;base64,AAAA' }])] },
      'input[0].content[0].file_data: only PDF files are supported by this model: send others as text.',
    ],
    [
      'a file by http',
      { input: [item('user', [{ type: 'input_file', file_url: 'http://a.example/b' }])] },
      'input[0].content[0].file_url: a file must be an https URL.',
    ],
    [
      'a schema of free names',
      {
        text: {
          format: {
            type: 'json_schema',
            name: 'x',
            schema: { type: 'object', additionalProperties: { type: 'string' } },
          },
        },
      },
      'text.format.schema: objects with members of any name are not supported by this model: list their properties, or use json_object.',
    ],
  ])('refuses %s', (_case, members, converted) => {
    expect(refusal(() => toMessages(members))).toBe(converted)
  })
})

describe('members of a turn as those of a messages request', () => {
  it.each<[string, Json, Json]>([
    ['nothing', {}, {}],
    ['a stream', { stream: true }, { stream: true }],
    ['a maximum', { max_output_tokens: 50 }, { max_tokens: 50 }],
    ['sampling', { temperature: 1.5, presence_penalty: 1 }, { temperature: 1 }],
    [
      'a user',
      { user: 'u', safety_identifier: 's', prompt_cache_key: 'k', service_tier: 'flex' },
      { metadata: { user_id: 's' } },
    ],
    [
      'a schema',
      { text: { format: { type: 'json_schema', name: 'x', schema: { type: 'object', properties: {} } } } },
      {
        output_config: {
          format: {
            type: 'json_schema',
            schema: { type: 'object', properties: {}, additionalProperties: false },
          },
        },
      },
    ],
    [
      'an object',
      { text: { format: { type: 'json_object' } } },
      { system: [text(expect.stringContaining('exactly one JSON object') as string)] },
    ],
  ])('%s', (_case, asked, said) => {
    const { model, messages: _messages, ...members } = toMessages(asked)
    expect(model).toBe('upstream-model')
    expect(members).toEqual({ max_tokens: 10_000, ...said })
  })
})
