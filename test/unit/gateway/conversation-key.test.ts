import { describe, expect, it } from 'vitest'
import { type ConversationCall, conversationKey } from '../../../src/gateway/calls/conversation-key.ts'
import { chatCompletions, completions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import { responses } from '../../../src/gateway/protocols/responses.ts'
import { chat, message, outline } from './outlining.ts'

function keyOf(
  protocol: Protocol,
  body: string,
  more: Partial<Omit<ConversationCall, 'headers'>> & { headers?: Record<string, string> } = {},
): string | null {
  const { headers = {}, ...rest } = more
  const call = { organizationId: 'o', modelId: 'm', outline: outline(protocol, body), ...rest }
  return conversationKey({ ...call, headers: new Headers(headers) })
}

const said = (...texts: unknown[]) =>
  texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))
const marker = { cache_control: { type: 'ephemeral', ttl: '1h' } }

describe('the key of a conversation', () => {
  it('is a digest that depends on organization and model', () => {
    const body = chat({ messages: said('hello') })
    const key = keyOf(chatCompletions, body)
    expect(key).toMatch(/^[0-9a-f]{64}$/)
    expect(keyOf(chatCompletions, body)).toBe(key)
    expect(keyOf(chatCompletions, body, { organizationId: 'p' })).not.toBe(key)
    expect(keyOf(chatCompletions, body, { modelId: 'n' })).not.toBe(key)
  })

  it('stays the same as the conversation goes on', () => {
    const system = { role: 'system', content: 'be brief' }
    const first = keyOf(chatCompletions, chat({ messages: [system, ...said('a')], temperature: 1 }))
    expect(keyOf(chatCompletions, chat({ messages: [system, ...said('a', 'b', 'c')], stream: true }))).toBe(
      first,
    )
    expect(keyOf(chatCompletions, chat({ messages: [system, ...said('x', 'b', 'c')] }))).not.toBe(first)
    expect(keyOf(chatCompletions, chat({ messages: said('a') }))).not.toBe(first)
  })

  it('does not depend on where cache markers stand', () => {
    const block = (text: string, more = {}) => [{ type: 'text', text, ...more }]
    const tools = (more = {}) => [{ name: 't', input_schema: { type: 'object' }, ...more }]
    const first = keyOf(messages, message({ system: 's', tools: tools(marker), messages: said('a') }))
    const second = message({
      system: block('s', marker),
      tools: tools(),
      messages: said(block('a', marker), 'b', block('c', marker)),
    })
    expect(keyOf(messages, second)).toBe(first)
    expect(keyOf(messages, message({ system: 's', tools: [], messages: said('a') }))).not.toBe(first)
  })

  it('tells conversations apart by texts, not by how they lie together', () => {
    const texts = (...parts: string[]) => [
      { role: 'user', content: parts.map((text) => ({ type: 'text', text })) },
    ]
    const keys = [['ab', 'c'], ['a', 'bc'], ['abc']].map((parts) =>
      keyOf(chatCompletions, chat({ messages: texts(...parts) })),
    )
    expect(new Set(keys).size).toBe(3)
  })

  it('reads no more than the beginning of long texts, and that all the same', () => {
    const long = 'x'.repeat(600 * 1024)
    const keys = [`1${long}`, `2${long}`].map((text) =>
      keyOf(chatCompletions, chat({ messages: said(text) })),
    )
    expect(new Set(keys).size).toBe(2)
    expect(keyOf(chatCompletions, chat({ messages: said(`1${long}`, 'b', 'c') }))).toBe(keys[0])
    const other = keyOf(messages, message({ system: `1${long}`, messages: said('a') }))
    expect(keyOf(messages, message({ system: `1${long}`, messages: said('b') }))).not.toBe(other)
  })

  it('is that of the name that the caller gives, the most telling one first', () => {
    const headers = { 'x-session-id': 's' }
    const named = keyOf(chatCompletions, chat({ prompt_cache_key: 'k' }), { headers })
    expect(keyOf(chatCompletions, chat({ prompt_cache_key: 'k', messages: said('x') }))).toBe(named)
    expect(keyOf(chatCompletions, chat({ prompt_cache_key: 'l' }), { headers })).not.toBe(named)
    const user = keyOf(messages, message({ metadata: { user_id: 'u' } }), { headers })
    expect(keyOf(messages, message({ metadata: { user_id: 'u' }, messages: said('x') }))).toBe(user)
    const session = keyOf(messages, message({}), { headers })
    expect(keyOf(messages, message({ messages: said('x') }), { headers })).toBe(session)
    expect(keyOf(messages, message({}), { headers: { 'x-codeclient-session-id': 's' } })).toBe(session)
    expect(new Set([named, user, session]).size).toBe(3)
  })

  it.each([
    { prompt_cache_key: null },
    { prompt_cache_key: '' },
    { metadata: null },
    { metadata: {} },
    { metadata: { user_id: 5 } },
    { metadata: { user_id: '' } },
    { metadata: { user_id: 'u'.repeat(5_000) } },
  ])('passes over a name that is none: %j', (members) => {
    expect(keyOf(chatCompletions, chat(members))).toBe(keyOf(chatCompletions, chat({})))
  })

  it('is there for legacy completions', () => {
    const key = keyOf(completions, '{"model":"m","prompt":"once"}')
    expect(key).not.toBeNull()
    expect(keyOf(completions, '{"model":"m","prompt":"upon"}')).not.toBe(key)
  })

  it('is there for turns of responses, whose items get another id each time', () => {
    const item = (id: number, role: string, content: unknown) => ({
      id: `msg_${id}`,
      type: 'message',
      role,
      content,
    })
    const turn = (members: object) => JSON.stringify({ model: 'm', stream: true, ...members })
    const first = turn({ instructions: 'Be kind.', input: [item(1, 'user', 'hello')] })
    const key = keyOf(responses, first)
    expect(key).not.toBeNull()
    const items = [
      item(2, 'user', [{ type: 'input_text', text: 'hello' }]),
      item(3, 'assistant', 'hi'),
      item(4, 'user', 'again'),
    ]
    const later = { ...JSON.parse(first), input: items }
    // A text that became a part has another path, but says the same.
    expect(keyOf(responses, JSON.stringify(later))).toBe(key)
    expect(keyOf(responses, turn({ input: [item(1, 'user', 'hello')] }))).not.toBe(key)
    expect(keyOf(responses, turn({ ...later, input: [item(1, 'user', 'hallo')] }))).not.toBe(key)
    const named = keyOf(responses, turn({ input: [item(1, 'user', 'a')], prompt_cache_key: 'k' }))
    expect(keyOf(responses, turn({ input: [item(1, 'user', 'b')], prompt_cache_key: 'k' }))).toBe(named)
  })
})
