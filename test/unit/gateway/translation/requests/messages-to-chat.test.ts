import { describe, expect, it } from 'vitest'
import { type Json, listOf, parseJson } from '../../../../../src/gateway/protocols/json.ts'
import { assistant, fromMessages, refusal, target, text, user } from './requests.ts'

const turns = (...messages: Json[]) => fromMessages({ messages }).messages
const base64 = (media_type: string) => ({ type: 'base64', media_type, data: 'AAAA' })
const use = (id: string, more: Json = {}) => ({
  type: 'tool_use',
  id,
  name: 'look',
  input: { a: 1 },
  ...more,
})
const called = (id: string, args = '{"a":1}') => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: args },
})
const result = (id: string, content: unknown, more: Json = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...more,
})
const tool = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content })

describe('members of a messages request', () => {
  it('has only the required members by default', () => {
    expect(fromMessages({})).toEqual({
      model: 'upstream-model',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hello' }],
    })
  })

  it.each<[Json, Json]>([
    [{ max_tokens: 99_999 }, { max_tokens: 10_000 }],
    [{ stream: true }, { stream: true, stream_options: { include_usage: true } }],
    [{ stream: false }, {}],
    [
      { temperature: 0, top_p: 0.4 },
      { temperature: 0, top_p: 0.4 },
    ],
    [{ stop_sequences: ['a', 'b', 'c', 'd', 'e'] }, { stop: ['a', 'b', 'c', 'd', 'e'] }],
    [{ stop_sequences: [] }, {}],
    [
      {
        top_k: 5,
        metadata: { user_id: 'u' },
        thinking: { type: 'enabled', budget_tokens: 2000 },
        context_management: { edits: [] },
        output_config: { effort: 'high' },
        betas: ['b'],
        service_tier: 'auto',
        speed: 'fast',
        diagnostics: {},
        container: null,
        mcp_servers: [],
        cache_control: { type: 'ephemeral' },
        fallbacks: [{ model: 'm' }],
        a_member_of_tomorrow: 1,
      },
      {},
    ],
  ])('%j', (asked, said) => {
    const { model: _model, messages: _messages, ...members } = fromMessages(asked)
    expect(members).toEqual({ max_tokens: 100, ...said })
  })

  it.each<[Json, string]>([
    [{ container: 'c' }, 'container: containers are not supported by this model.'],
    [{ mcp_servers: [{ type: 'url' }] }, 'mcp_servers: MCP servers are not supported by this model.'],
    [{ inference_geo: 'us' }, 'inference_geo: the region of inference cannot be chosen for this model.'],
  ])('refuses %j', (asked, converted) => {
    expect(refusal(() => fromMessages(asked))).toBe(converted)
  })

  it('speaks to models that reason as they ask for it', () => {
    const request = fromMessages({ temperature: 0, top_p: 0.4 }, target('reasoning'))
    expect(request).toMatchObject({ max_completion_tokens: 100 })
    expect(Object.keys(request)).not.toEqual(expect.arrayContaining(['max_tokens']))
    expect(request).not.toHaveProperty('temperature')
    expect(request).not.toHaveProperty('top_p')
    // Its loss would make another answer: models that do not take it say so.
    expect(fromMessages({ stop_sequences: ['#'] }, target('reasoning')).stop).toEqual(['#'])
  })

  it.each<[Json, string | undefined]>([
    [{}, undefined],
    [{ thinking: { type: 'enabled', budget_tokens: 1024 } }, 'low'],
    [{ thinking: { type: 'enabled', budget_tokens: 8192 } }, 'medium'],
    [{ thinking: { type: 'enabled', budget_tokens: 31_999 } }, 'high'],
    [{ thinking: { type: 'adaptive' } }, undefined],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } }, 'medium'],
    [{ output_config: { effort: 'max' } }, 'high'],
    [{ output_config: { effort: 'xhigh' } }, 'high'],
    [{ output_config: { effort: 'constructor' } }, undefined],
    [{ thinking: { type: 'disabled' } }, 'low'],
    [{ thinking: { type: 'disabled' }, output_config: { effort: 'max' } }, 'low'],
  ])('%j is the effort %s', (asked, effort) => {
    expect(fromMessages(asked, target('reasoning')).reasoning_effort).toBe(effort)
    expect(fromMessages(asked)).not.toHaveProperty('reasoning_effort')
  })
})

describe('the system prompt', () => {
  const ATTRIBUTION = 'x-anthropic-billing-header: cc_version=2.1.329; cch=0aaa9;'
  it.each<[unknown, Json[]]>([
    [undefined, []],
    ['', []],
    ['Be brief.', [{ role: 'system', content: 'Be brief.' }]],
    [
      [text('One.', { cache_control: { type: 'ephemeral', ttl: '1h' } }), text(' '), text('Two.')],
      [{ role: 'system', content: 'One.\n\nTwo.' }],
    ],
    [[text(ATTRIBUTION), text('Be brief.')], [{ role: 'system', content: 'Be brief.' }]],
    [`${ATTRIBUTION}\nBe brief.`, [{ role: 'system', content: 'Be brief.' }]],
    [[text(ATTRIBUTION)], []],
    [`Say ${ATTRIBUTION}`, [{ role: 'system', content: `Say ${ATTRIBUTION}` }]],
  ])('%j', (system, said) => {
    expect(fromMessages({ system }).messages).toEqual([...said, { role: 'user', content: 'Hello' }])
  })
})

describe('turns of the messages protocol', () => {
  it('keeps texts, and drops what means something to its own family only', () => {
    expect(
      turns(
        user([text('a', { cache_control: { type: 'ephemeral' } }), text('b')]),
        assistant([
          { type: 'thinking', thinking: 't', signature: 's' },
          { type: 'redacted_thinking', data: 'd' },
          text('c', { citations: [{ type: 'char_location' }] }),
          { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
          { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
          text('d'),
        ]),
        user('e'),
        assistant([{ type: 'thinking', thinking: 't', signature: 's' }]),
        user([text('f')]),
      ),
    ).toEqual([user([text('a'), text('b')]), { role: 'assistant', content: 'cd' }, user('e'), user('f')])
  })

  it('puts results before other content of the user, and their images after them', () => {
    expect(
      turns(
        user('q'),
        assistant([text('Let me see.'), use('a'), use('b', { input: {} }), use('c'), use('d'), use('e')]),
        user([
          text('look'),
          result('a', 'plain'),
          result('b', [text('x'), text('y'), { type: 'image', source: base64('image/png') }]),
          result('c', [{ type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }]),
          result('d', 'it broke', { is_error: true, cache_control: { type: 'ephemeral' } }),
          result('e', undefined),
        ]),
      ),
    ).toEqual([
      user('q'),
      {
        role: 'assistant',
        content: 'Let me see.',
        tool_calls: [called('a'), called('b', '{}'), called('c'), called('d'), called('e')],
      },
      tool('a', 'plain'),
      tool('b', 'x\ny'),
      tool('c', '(What the tool returned follows as an attachment.)'),
      tool('d', 'Error: it broke'),
      tool('e', ''),
      user([
        text('look'),
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
      ]),
    ])
  })

  it('gives a call without text the content that vendors answer with', () => {
    expect(turns(user('q'), assistant([use('a')]), user([result('a', 'r')]))).toEqual([
      user('q'),
      { role: 'assistant', content: null, tool_calls: [called('a')] },
      tool('a', 'r'),
    ])
  })

  it('sends ids that chat completions accept, and passes results without a call unchanged', () => {
    const long = `toolu_${'x'.repeat(60)}`
    expect(
      turns(
        user('q'),
        assistant([use(long), use('a')]),
        user([result('a', '2'), result(long, '1'), result('z', '0')]),
      ),
    ).toEqual([
      user('q'),
      { role: 'assistant', content: null, tool_calls: [called('call_1'), called('a')] },
      tool('a', '2'),
      tool('call_1', '1'),
      tool('z', '0'),
    ])
  })

  it('keeps numbers as they were written', () => {
    const raw = parseJson('{"n":12345678901234567890}')
    const [, turn] = listOf(turns(user('q'), assistant([use('a', { input: raw })]), user([result('a', 'r')])))
    expect(listOf(turn?.tool_calls)[0]).toEqual(called('a', '{"n":12345678901234567890}'))
  })

  it('refuses to continue an answer, in words that clients know', () => {
    expect(refusal(() => turns(user('q'), assistant('{')))).toBe(
      'messages: This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  })
})

describe('an empty conversation', () => {
  it.each<[Json[]]>([
    [[]],
    [[user('')]],
    [[user([])]],
    [[user([text('')])]],
    [[user('a'), assistant('b'), user('')]],
    [[user('a'), assistant([use('c')]), user([])]],
  ])('is refused: %j', (messages) => {
    for (const system of [undefined, 'Be brief.']) {
      expect(refusal(() => fromMessages({ system, messages }))).toBe(
        'messages: the last message must have content.',
      )
    }
  })
})

describe('blocks of the messages protocol', () => {
  const document = (source: Json, more: Json = {}) => ({ type: 'document', source, ...more })
  const file = (filename: string) => ({
    type: 'file',
    file: { filename, file_data: 'data:application/pdf;base64,AAAA' },
  })

  it.each<[Json, unknown]>([
    [
      { type: 'image', source: base64('image/png'), cache_control: { type: 'ephemeral' } },
      [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
    ],
    [document(base64('application/pdf')), [file('document.pdf')]],
    [
      document(base64('application/pdf'), { title: 'Plan', citations: { enabled: true } }),
      [file('Plan.pdf')],
    ],
    [document(base64('application/pdf'), { title: 'p.PDF', context: 'Old.' }), [text('Old.'), file('p.PDF')]],
    [document({ type: 'text', media_type: 'text/plain', data: 'Words.' }), 'Words.'],
    [
      document({ type: 'text', media_type: 'text/plain', data: 'Words.' }, { title: 'T', context: 'C' }),
      'T\n\nC\n\nWords.',
    ],
    [document({ type: 'content', content: 'Words.' }), 'Words.'],
    [
      document({
        type: 'content',
        content: [text('Words.'), { type: 'image', source: base64('image/png') }],
      }),
      [text('Words.'), { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
    ],
    [
      { type: 'search_result', title: 'T', source: 'https://a.example', content: [text('Found.')] },
      'T\nhttps://a.example\nFound.',
    ],
    [{ type: 'compaction', content: 'So far.' }, 'So far.'],
  ])('%j', (block, content) => {
    expect(turns(user([block]))).toEqual([{ role: 'user', content }])
  })

  it('names a tool that a result refers to', () => {
    const messages = [
      user('q'),
      assistant([use('a')]),
      user([result('a', [{ type: 'tool_reference', tool_name: 'find' }])]),
    ]
    expect(listOf(turns(...messages))[2]).toEqual(tool('a', 'Tool: find'))
  })

  it.each<[Json, string]>([
    [
      { type: 'image', source: { type: 'file', file_id: 'f' } },
      '.source: an image must be sent as base64 or as a URL.',
    ],
    [
      document({ type: 'url', url: 'https://a.example/b.pdf' }),
      '.source: a document must be sent as base64 or as text.',
    ],
    [document({ type: 'file', file_id: 'f' }), '.source: a document must be sent as base64 or as text.'],
    [
      { type: 'container_upload', file_id: 'f' },
      ': blocks of type container_upload are not supported by this model.',
    ],
    [{ type: 'tool_addition' }, ': blocks of type tool_addition are not supported by this model.'],
    [{ type: 'constructor' }, ': blocks of type constructor are not supported by this model.'],
    [{}, ': blocks without a type are not supported by this model.'],
  ])('refuses %j', (block, converted) => {
    expect(refusal(() => turns(user([text('x'), block])))).toBe(`messages.0.content.1${converted}`)
    const within = user([text('x'), result('a', [block])])
    expect(refusal(() => turns(user('q'), assistant([use('a')]), within))).toBe(
      `messages.2.content.1.content.0${converted}`,
    )
  })

  it('refuses media of an assistant', () => {
    const image = { type: 'image', source: base64('image/png') }
    expect(refusal(() => turns(user('q'), assistant([image]), user('x')))).toBe(
      "messages.1.content.0: the assistant's blocks of type image are not supported by this model.",
    )
  })
})
