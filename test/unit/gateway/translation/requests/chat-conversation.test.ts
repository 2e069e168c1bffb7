import { describe, expect, it } from 'vitest'
import { type Json, listOf } from '../../../../../src/gateway/protocols/json.ts'
import { assistant, call, fromChat, refusal, system, target, text, toolMessage, user } from './requests.ts'

const said = (...messages: Json[]): Json => fromChat({ messages })
const turns = (...messages: Json[]) => said(...messages).messages
const MARK = { type: 'ephemeral', ttl: '1h' }

describe('system messages', () => {
  it('hoists system and developer messages, wherever they stand, in their order', () => {
    const request = said(
      system('One.'),
      { role: 'developer', content: [text('Two.', { cache_control: MARK })], name: 'dev' },
      user('Hi'),
      system('Three.'),
    )
    expect(request.system).toEqual([text('One.'), text('Two.', { cache_control: MARK }), text('Three.')])
    expect(request.messages).toEqual([user([text('Hi')])])
  })

  it('become the user’s when there is no other message', () => {
    expect(said(system('Only.'))).toMatchObject({ messages: [user([text('Only.')])] })
    expect(said(system('Only.'))).not.toHaveProperty('system')
    expect(said(system('One.'), system('Two.'))).toMatchObject({
      system: [text('One.')],
      messages: [user([text('Two.')])],
    })
  })

  it('takes text only', () => {
    const image = { type: 'image_url', image_url: { url: 'https://pictures.example/a.png' } }
    expect(refusal(() => said(system([image]), user('x')))).toBe(
      'messages.0.content: system messages of this model are text only.',
    )
  })
})

describe('turns', () => {
  it('merges messages of one role and drops empty ones', () => {
    expect(
      turns(
        user('a'),
        user([text('b'), text(''), text(' \n')]),
        assistant('c'),
        assistant(null),
        assistant('d'),
      ),
    ).toEqual([user([text('a'), text('b')]), assistant([text('c'), text('d')])])
  })

  const goOn = user([text('(Continue from where you left off.)')])
  it.each<[string, Json]>([
    ['a blank message of the user', user(' ')],
    ['a system message', system('Be brief.')],
  ])('asks to go on where the end of the conversation has no place: %s', (_case, last) => {
    expect(turns(user('a'), assistant('b'), last)).toEqual([user([text('a')]), assistant([text('b')]), goOn])
    expect(turns(user('a'), assistant('b'))).toEqual([user([text('a')]), assistant([text('b')])])
  })

  it('keeps all content of the assistant, or refuses it', () => {
    const spoken = [
      { type: 'thinking', thinking: [text('Hm.')] },
      text('b'),
      { type: 'refusal', refusal: 'No.' },
    ]
    expect((turns(user('a'), assistant(spoken), user('c')) as Json[])[1]).toEqual(
      assistant([text('b'), text('No.')]),
    )
    const image = { type: 'image_url', image_url: { url: 'https://a.example/b.png' } }
    for (const [part, converted] of [
      [image, 'of type image_url'],
      [{ type: 'constructor' }, 'of type constructor'],
      [{ text: 'x' }, 'without a type'],
    ] as const) {
      expect(refusal(() => said(user('a'), assistant([text('b'), part]), user('c')))).toBe(
        `messages.1.content.1: the assistant's parts ${converted} are not supported by this model.`,
      )
    }
  })

  it('begins with the user', () => {
    expect(turns(assistant('Welcome.'), user('Hi'))).toEqual([
      user([text('(The assistant begins the conversation.)')]),
      assistant([text('Welcome.')]),
      user([text('Hi')]),
    ])
  })

  it.each([[[]], [[user('')]], [[user(null)]], [[system(' ')]], [[assistant('')]]])(
    'needs content: %j',
    (messages) => {
      expect(refusal(() => said(...messages))).toBe('messages: at least one message must have content.')
    },
  )

  it('keeps what an assistant refused, and drops names and readable reasoning', () => {
    expect(
      turns(
        { ...user('a'), name: 'ann' },
        assistant(null, { refusal: 'No.', reasoning_content: 'Hm.', name: 'bot' }),
        user('b'),
        assistant([text('c'), { type: 'refusal', refusal: 'Never.' }]),
        user('d'),
      ),
    ).toEqual([
      user([text('a')]),
      assistant([text('No.')]),
      user([text('b')]),
      assistant([text('c'), text('Never.')]),
      user([text('d')]),
    ])
  })

  it('keeps cache markers, of parts and of messages', () => {
    expect(
      turns({ ...user('a'), cache_control: MARK }, assistant([text('b', { cache_control: MARK })]), {
        ...user([text('c'), text('d', { prompt_cache_breakpoint: { mode: 'explicit' } })]),
        cache_control: MARK,
      }),
    ).toEqual([
      user([text('a', { cache_control: MARK })]),
      assistant([text('b', { cache_control: MARK })]),
      user([text('c'), text('d', { cache_control: MARK })]),
    ])
  })

  it.each<[Json, string]>([
    [
      { audio: { id: 'x' } },
      'messages.1.audio: earlier audio is kept at another provider and cannot be used by this model.',
    ],
    [
      { function_call: { name: 'f', arguments: '{}' } },
      'messages.1.function_call: function calls of the older form are not supported: send them as tool_calls.',
    ],
    [
      { tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'f', input: 'x' } }] },
      'messages.1.tool_calls.0: calls of custom tools are not supported by this model.',
    ],
  ])('refuses %j of an assistant', (more, converted) => {
    expect(refusal(() => said(user('a'), assistant(null, more)))).toBe(converted)
  })
})

describe('a conversation that ends with the assistant', () => {
  const ending = { messages: [user('a'), assistant('Once upon a \n')] }

  it('is the beginning of the answer where the model takes one, without white space at its end', () => {
    expect(fromChat(ending).messages).toEqual([user([text('a')]), assistant([text('Once upon a')])])
    expect(fromChat({ ...ending, reasoning_effort: 'low' }, target('reasoning'))).not.toHaveProperty(
      'thinking',
    )
  })

  it('is followed by a request to continue where the model refuses prefill', () => {
    const request = fromChat({ ...ending, reasoning_effort: 'low' }, target('reasoning', 'adaptive_thinking'))
    expect(request.messages).toEqual([
      user([text('a')]),
      assistant([text('Once upon a \n')]),
      user([text('(Continue from where you left off.)')]),
    ])
    expect(request).toHaveProperty('thinking', { type: 'adaptive' })
  })
})

describe('tool calls and results', () => {
  const use = (id: string, name = 'look', input: unknown = { a: 1 }) => ({
    type: 'tool_use',
    id,
    name,
    input,
  })
  const result = (id: string, content?: unknown, more: Json = {}) => ({
    type: 'tool_result',
    tool_use_id: id,
    ...(content === undefined ? {} : { content }),
    ...more,
  })

  it('puts the results of a turn first, in one turn', () => {
    expect(
      turns(
        user('q'),
        assistant('', { tool_calls: [call('a'), call('b')] }),
        toolMessage('a', 'one'),
        user('by the way'),
        toolMessage('b', [text('two'), text(' ')]),
        assistant('done'),
        user('thanks'),
      ),
    ).toEqual([
      user([text('q')]),
      assistant([use('a'), use('b')]),
      user([result('a', [text('one')]), result('b', [text('two')]), text('by the way')]),
      assistant([text('done')]),
      user([text('thanks')]),
    ])
  })

  it('lets a result be empty, hold images, and be marked', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'high' } }
    expect(
      turns(
        user('q'),
        assistant(null, { tool_calls: [call('a'), call('b'), call('c')] }),
        toolMessage('a', ''),
        toolMessage('b', [text('see'), image]),
        toolMessage('c', [text('x', { cache_control: MARK }), text('y')]),
      ),
    ).toEqual([
      user([text('q')]),
      assistant([use('a'), use('b'), use('c')]),
      user([
        result('a'),
        result('b', [
          text('see'),
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        ]),
        result('c', [text('x'), text('y')], { cache_control: MARK }),
      ]),
    ])
  })

  it.each<[string | null, unknown]>([
    ['', {}],
    [null, {}],
    ['{"n": 12345678901234567890}', null],
    ['{"a": [1, {"b": "é"}]}', { a: [1, { b: 'é' }] }],
    ['{"cut": "of', { INVALID_JSON: '{"cut": "of' }],
    ['[1]', { INVALID_JSON: '[1]' }],
    ['12345678901234567890', { INVALID_JSON: '12345678901234567890' }],
    ['null', { INVALID_JSON: 'null' }],
  ])('reads the arguments %j', (written, input) => {
    const [, turn] = turns(
      user('q'),
      assistant(null, {
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: written } }],
      }),
      toolMessage('a', 'r'),
    ) as Json[]
    const [block] = listOf(turn?.content)
    if (input === null) expect(JSON.stringify(block?.input)).toBe('{"n":12345678901234567890}')
    else expect(block?.input).toEqual(input)
  })

  it('sends each id once, as the vendor accepts it, and the same in its result', () => {
    const odd = 'functions.look:0'
    const round = [
      assistant(null, { tool_calls: [call(odd), call('x')] }),
      toolMessage('x', '2'),
      toolMessage(odd, '1'),
    ]
    expect(turns(user('q'), ...round, ...round)).toEqual([
      user([text('q')]),
      assistant([use('call_1'), use('x')]),
      user([result('x', [text('2')]), result('call_1', [text('1')])]),
      assistant([use('call_2'), use('call_3')]),
      user([result('call_3', [text('2')]), result('call_2', [text('1')])]),
    ])
  })

  it('distinguishes calls of one id, and joins results of one call', () => {
    expect(
      turns(
        user('q'),
        assistant(null, { tool_calls: [call('a', 'first'), call('a', 'second')] }),
        toolMessage('a', '1'),
        toolMessage('a', '2'),
        toolMessage('a', '3'),
      ),
    ).toEqual([
      user([text('q')]),
      assistant([use('a', 'first'), use('call_1', 'second')]),
      user([result('a', [text('1')]), result('call_1', [text('2'), text('3')])]),
    ])
  })

  it.each<[string, Json[], string]>([
    [
      'a result without a call',
      [user('q'), toolMessage('a', 'r')],
      'messages.1.tool_call_id: no tool call of the assistant before it has this id.',
    ],
    [
      'a result that comes too late',
      [
        user('q'),
        assistant(null, { tool_calls: [call('a')] }),
        toolMessage('a', '1'),
        assistant('x'),
        toolMessage('a', '1'),
      ],
      'messages.4.tool_call_id: no tool call of the assistant before it has this id.',
    ],
    [
      'a call without a result, at the end',
      [user('q'), assistant(null, { tool_calls: [call('a'), call('b')] }), toolMessage('a', 'r')],
      'messages.1.tool_calls: the tool call "b" has no tool message.',
    ],
    [
      'a call without a result, before the next turn',
      [user('q'), assistant(null, { tool_calls: [call('a')] }), user('x'), assistant('y'), user('z')],
      'messages.1.tool_calls: the tool call "a" has no tool message.',
    ],
  ])('refuses %s', (_case, messages, converted) => {
    expect(refusal(() => said(...messages))).toBe(converted)
  })
})

describe('images and files', () => {
  const image = (url: unknown) => ({ type: 'image_url', image_url: url })
  const file = (members: Json) => ({ type: 'file', file: members })
  const base64 = (media_type: string, data = 'AAAA') => ({ type: 'base64', media_type, data })

  it.each<[Json, Json]>([
    [
      image({ url: 'https://a.example/b.png' }),
      { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } },
    ],
    [
      image('https://a.example/b.png'),
      { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } },
    ],
    [image({ url: 'data:image/png;base64,AAAA' }), { type: 'image', source: base64('image/png') }],
    [image({ url: 'data:image/JPG;base64,AAAA' }), { type: 'image', source: base64('image/jpeg') }],
    [image({ url: 'DATA:image/webp;x=y;BASE64,AAAA' }), { type: 'image', source: base64('image/webp') }],
    [
      { ...image({ url: 'data:image/gif;base64,AAAA' }), cache_control: MARK },
      { type: 'image', source: base64('image/gif'), cache_control: MARK },
    ],
    [
      file({ file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' }),
      { type: 'document', source: base64('application/pdf'), title: 'a.pdf' },
    ],
    [file({ file_data: 'AAAA' }), { type: 'document', source: base64('application/pdf') }],
    [
      file({ file_data: 'AAAA', filename: 'b.PDF' }),
      { type: 'document', source: base64('application/pdf'), title: 'b.PDF' },
    ],
  ])('%j', (part, block) => {
    expect(turns(user([part]))).toEqual([user([block])])
  })

  it.each<[Json, string]>([
    [
      image({ url: 'data:image/svg+xml;base64,AAAA' }),
      '.image_url.url: images must be JPEG, PNG, GIF or WebP.',
    ],
    [
      image({ url: 'data:image/png,AAAA' }),
      '.image_url.url: an image must be an https URL or a base64 data URL.',
    ],
    [
      image({ url: 'http://a.example/b.png' }),
      '.image_url.url: an image must be an https URL or a base64 data URL.',
    ],
    [image({}), '.image_url.url: an image must be an https URL or a base64 data URL.'],
    [
      file({ file_id: 'file-1' }),
      '.file: a file must be sent as file_data; files of other providers are unknown here.',
    ],
    [
      file({ file_data: 'data:text/csv;base64,AAAA' }),
      '.file: only PDF files are supported by this model: send others as text.',
    ],
    [
      file({ file_data: 'AAAA', filename: 'a.docx' }),
      '.file: only PDF files are supported by this model: send others as text.',
    ],
    [
      { type: 'input_audio', input_audio: {} },
      ': parts of type input_audio are not supported by this model.',
    ],
    [{ type: 'constructor' }, ': parts of type constructor are not supported by this model.'],
    [{}, ': parts without a type are not supported by this model.'],
  ])('refuses %j', (part, converted) => {
    expect(refusal(() => said(user('x'), assistant('y'), user([text('z'), part])))).toBe(
      `messages.2.content.1${converted}`,
    )
  })
})
