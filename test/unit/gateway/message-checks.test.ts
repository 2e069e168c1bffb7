import { describe, expect, it } from 'vitest'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { countTokens, messages } from '../../../src/gateway/protocols/messages.ts'
import { chat, message, outline, refusal, USER } from './outlining.ts'

describe('messages of chat completions', () => {
  it.each<[unknown, string]>([
    [undefined, 'messages is required and must be an array.'],
    [null, 'messages is required and must be an array.'],
    ['text', 'messages is required and must be an array.'],
    [{ 0: { role: 'user' } }, 'messages is required and must be an array.'],
    [[], 'messages: at least one message is required.'],
    [['hi'], 'messages.0: Input should be an object.'],
    [[[['role', 'user']]], 'messages.0: Input should be an object.'],
    [[null], 'messages.0: Input should be an object.'],
    [[{}], 'messages.0.role: Field required.'],
    [[{ content: 'hi' }], 'messages.0.role: Field required.'],
    ...[null, 1, 'User', 'bot', 'function', ''].map((role): [unknown, string] => [
      [{ role }],
      "messages.0.role: Input should be 'system', 'developer', 'user', 'assistant' or 'tool'.",
    ]),
    ...[1, true, {}].map((content): [unknown, string] => [
      [{ role: 'user', content }],
      'messages.0.content: Input should be a string, an array of content parts or null.',
    ]),
    [[{ role: 'assistant', tool_calls: {} }], 'messages.0.tool_calls: Input should be an array.'],
    ...[undefined, null, '', 7].map((tool_call_id): [unknown, string] => [
      [...USER, { role: 'tool', content: 'x', tool_call_id }],
      "messages.1.tool_call_id: Field required on a message with role 'tool'.",
    ]),
    // The state of one message does not affect the next.
    [
      [{ role: 'tool', tool_call_id: 'a' }, { role: 'tool' }],
      "messages.1.tool_call_id: Field required on a message with role 'tool'.",
    ],
    [[{ role: 'user' }, {}], 'messages.1.role: Field required.'],
    // The first fault is reported.
    [
      [{ role: 'user', content: 1 }, { role: 'bot' }],
      'messages.0.content: Input should be a string, an array of content parts or null.',
    ],
  ])('%j: %s', (value, expected) => {
    expect(refusal(chatCompletions, chat({ messages: value }))).toBe(expected)
  })

  it('are taken in every role, in any order, with content of every kind', () => {
    const list = [
      { role: 'system', content: 's' },
      { role: 'developer', content: [{ type: 'text', text: 'd' }] },
      { role: 'user', content: 'u', name: 'n' },
      { role: 'user', content: [] },
      { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: {} }] },
      { role: 'tool', tool_call_id: 'a', content: 'x' },
      { role: 'tool', tool_call_id: `call_${'s'.repeat(5000)}`, content: 'a signature may ride in an id' },
      { role: 'assistant', tool_calls: null },
      { role: 'user' },
    ]
    expect(refusal(chatCompletions, chat({ messages: list }))).toBe('accepted')
    expect(refusal(chatCompletions, '{"messages":[{"\\u0072ole":"\\u0075ser"}],"model":"m"}')).toBe(
      'accepted',
    )
  })

  it.each([chatCompletions, messages])(
    'have one role each: a policy holds for what a message is',
    (protocol) => {
      const twice = (first: string, second: string) =>
        `{"model":"m","max_tokens":1,"messages":[{"role":"${first}","content":"x","tool_call_id":"a","r\\u006fle":"${second}"}]}`
      for (const body of [twice('tool', 'user'), twice('user', 'tool'), twice('user', 'user')]) {
        expect(refusal(protocol, body)).toBe('messages.0.role: May be given once only.')
      }
    },
  )

  it('are not taken in a role of any length', () => {
    const list = [{ role: 'user'.repeat(1000) }]
    expect(refusal(chatCompletions, chat({ messages: list }))).toMatch(/^messages\.0\.role: Input should be/)
  })

  it('are read wherever they stand, and only at the top', () => {
    expect(refusal(chatCompletions, '{"messages":[{"role":"bot"}],"model":"m"}')).toContain('messages.0.role')
    expect(refusal(chatCompletions, chat({ other: { messages: [{ role: 'bot' }] } }))).toBe('accepted')
  })
})

describe('messages', () => {
  it.each<[string, unknown[], string]>([
    ['max_tokens', [undefined, null, '5', true, {}, 1.5], 'max_tokens is required and must be an integer.'],
    ['max_tokens', [0, -1], 'max_tokens must be a positive integer.'],
    ['stream', ['x', 1, {}, []], 'stream must be a boolean.'],
    ['tools', ['x', {}, 1], 'tools must be an array.'],
    ['tool_choice', ['auto', 1, []], 'tool_choice must be an object.'],
    ['thread', [{}, { id: 't' }, 'x', 1], 'thread is not supported: send the whole conversation.'],
  ])('%s of %j: %s', (name, values, expected) => {
    for (const value of values) expect(refusal(messages, message({ [name]: value }))).toBe(expected)
  })

  it('name threads as unsupported for tool runners', () => {
    expect(() => outline(messages, message({ thread: { id: 't' } }))).toThrow(
      expect.objectContaining({
        details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
      }),
    )
    expect(() => outline(messages, message({ stream: 1 }))).toThrow(
      expect.objectContaining({ details: undefined }),
    )
  })

  it('take nulls, blocks and unknown members', () => {
    const body = message({
      stream: null,
      tools: null,
      tool_choice: null,
      thread: null,
      system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral' } }],
      thinking: { type: 'enabled', budget_tokens: 1024 },
      anything: [1, { deep: true }],
    })
    expect(outline(messages, body)).toMatchObject({ stream: false, maximumOutput: 5, choices: 1 })
    expect(outline(messages, message({ stream: true })).stream).toBe(true)
  })

  const alternate = (role: string) =>
    `Roles must alternate between 'user' and 'assistant', but found '${role}' twice in a row`
  const turn = (role: unknown, content: unknown = 'x') => ({ role, content })
  it.each<[unknown, string]>([
    [undefined, 'messages is required and must be an array.'],
    [[], 'messages: at least one message is required.'],
    [['hi'], 'messages.0: Input should be an object.'],
    [[{ content: 'x' }], 'messages.0.role: Field required.'],
    [[{ role: 'user' }], 'messages.0.content: Field required.'],
    [[turn('assistant')], "messages.0.role: The first message must have the role 'user'"],
    [[turn('system')], "messages.0.role: Input should be 'user' or 'assistant'"],
    [[turn('tool')], "messages.0.role: Input should be 'user' or 'assistant'"],
    [[turn(7)], "messages.0.role: Input should be 'user' or 'assistant'"],
    [[turn('user'), turn('user')], `messages.1.role: ${alternate('user')}`],
    [[turn('user'), turn('assistant'), turn('assistant')], `messages.2.role: ${alternate('assistant')}`],
    [[turn('user'), turn('assistant'), turn('user'), turn('user')], `messages.3.role: ${alternate('user')}`],
    [[turn('user'), { role: 'assistant' }], 'messages.1.content: Field required.'],
    ...[null, 1, {}, true].map((content): [unknown, string] => [
      [turn('user', content)],
      'messages.0.content: Input should be a string or an array of content blocks.',
    ]),
    [
      [turn('user'), turn('assistant', []), turn('user', [{ type: 'tool_result' }]), turn('assistant')],
      'accepted',
    ],
  ])('of %j: %s', (value, expected) => {
    for (const protocol of [messages, countTokens]) {
      expect(refusal(protocol, message({ messages: value }))).toBe(expected)
    }
  })

  it('count what text does not bound, in tool results too', () => {
    const content = [
      { type: 'image', source: { type: 'url', url: 'https://a.example' } },
      { type: 'tool_result', tool_use_id: 't', content: [{ type: 'image' }, { type: 'document' }] },
      { type: 'container_upload', file_id: 'f' },
    ]
    const body = message({ messages: [{ role: 'user', content }] })
    expect(outline(messages, body)).toMatchObject({ images: 2, documents: 2 })
  })
})

describe('count_tokens', () => {
  const count = (members: object) => JSON.stringify({ model: 'm', messages: USER, ...members })

  it('does not stream', () => {
    for (const stream of [true, 'x', 1, 0, {}]) {
      expect(refusal(countTokens, count({ stream }))).toBe(
        'stream is not supported on count_tokens: omit it or send false.',
      )
    }
    for (const stream of [false, null]) expect(refusal(countTokens, count({ stream }))).toBe('accepted')
  })

  it('needs no max_tokens, but a sound one', () => {
    expect(outline(countTokens, count({})).maximumOutput).toBe(0)
    expect(outline(countTokens, count({ max_tokens: 100 })).maximumOutput).toBe(0)
    expect(refusal(countTokens, count({ max_tokens: null }))).toBe('accepted')
    expect(refusal(countTokens, count({ max_tokens: 0 }))).toBe('max_tokens must be a positive integer.')
    expect(refusal(countTokens, count({ max_tokens: 1.5 }))).toBe('max_tokens must be an integer.')
    expect(refusal(countTokens, count({ tools: {} }))).toBe('tools must be an array.')
  })
})
