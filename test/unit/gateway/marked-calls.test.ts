import { describe, expect, it } from 'vitest'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { markedCallEdits } from '../../../src/gateway/protocols/marked-calls.ts'
import { markedSignature } from '../../../src/gateway/translation/marked-signature.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'

const MARKED = { google: { thought_signature: markedSignature('U0lH', 'gemini') } }
const OWN = { google: { thought_signature: 'U0lH' } }
const call = (more: object = {}, ...last: object[]) =>
  Object.assign({ id: 'c', type: 'function' }, more, { function: { name: 'f', arguments: '{}' } }, ...last)

function sent(body: object, space?: number): unknown {
  const bytes = new TextEncoder().encode(JSON.stringify(body, null, space))
  const edits = drained(markedCallEdits(bytes))
  return JSON.parse(new TextDecoder().decode(joinBytes(applyEdits(bytes, edits).pieces)))
}
const conversation = (...tool_calls: object[]) => ({
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls },
  ],
  model: 'm',
})

describe('signatures of calls that a model of another protocol has made', () => {
  it.each([0, 2])('are cut out of every call, indented by %i', (space) => {
    const calls = [
      call({ extra_content: MARKED }),
      call({}, { extra_content: MARKED }),
      call({ extra_content: OWN }),
      call(),
    ]
    const expected = [call(), call(), call({ extra_content: OWN }), call()]
    expect(sent(conversation(...calls), space)).toEqual(conversation(...expected))
  })

  it.each([
    ['of the provider itself', conversation(call({ extra_content: OWN }))],
    ['in a text', { messages: [{ role: 'user', content: JSON.stringify(MARKED) }] }],
    ['in another place', { messages: [{ role: 'user', content: 'a', extra_content: MARKED }] }],
    ['in arguments', conversation(call({}, { function: { name: 'f', arguments: JSON.stringify(MARKED) } }))],
  ])('stay where they are %s', (_name, body) => {
    expect(drained(markedCallEdits(new TextEncoder().encode(JSON.stringify(body))))).toEqual([])
  })

  it('are found across slices of a long body, with bounded edits', () => {
    const calls = Array.from({ length: 20_000 }, () => call({ extra_content: MARKED }))
    const padding = { role: 'user', content: 'x'.repeat(3_000_000) }
    const body = new TextEncoder().encode(
      JSON.stringify({ messages: [padding, { role: 'assistant', tool_calls: calls }] }),
    )
    expect(drained(markedCallEdits(body))).toHaveLength(10_000)
  })

  it('are edits of chat completions between equal protocols', () => {
    expect(chatCompletions.ownEdits).toBe(markedCallEdits)
  })
})
