import { describe, expect, it } from 'vitest'
import { unsignedThinkingEdits } from '../../../src/gateway/protocols/unsigned-thinking.ts'
import { markedSignature } from '../../../src/gateway/translation/marked-signature.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'

const TEXT = { type: 'text', text: 'so' }
const SIGNED = { type: 'thinking', thinking: 'hm', signature: 'abc' }
const UNSIGNED = { type: 'thinking', thinking: 'hm', signature: '' }
const MARKED = { type: 'thinking', thinking: 'hm', signature: markedSignature('abc', 'gemini') }
const CALL = { type: 'tool_use', id: 't', name: 'n', input: { type: 'thinking', signature: '' } }

function sent(messages: unknown[], space?: number): unknown {
  const body = new TextEncoder().encode(JSON.stringify({ model: 'm', messages }, null, space))
  return JSON.parse(
    new TextDecoder().decode(joinBytes(applyEdits(body, drained(unsignedThinkingEdits(body))).pieces)),
  )
}

const assistant = (...content: unknown[]) => ({ role: 'assistant', content })

describe('thinking without a signature', () => {
  it.each([
    ['first', [UNSIGNED, TEXT], [TEXT]],
    ['last', [TEXT, UNSIGNED], [TEXT]],
    ['between', [TEXT, UNSIGNED, CALL], [TEXT, CALL]],
    ['several', [UNSIGNED, UNSIGNED, TEXT, UNSIGNED, CALL, UNSIGNED, UNSIGNED], [TEXT, CALL]],
    ['beside signed thinking', [SIGNED, UNSIGNED, TEXT], [SIGNED, TEXT]],
    ['signed by a model of another protocol', [MARKED, TEXT, SIGNED], [TEXT, SIGNED]],
  ])('stays behind, %s', (_name, content, expected) => {
    for (const space of [0, 2]) {
      const messages = [
        { role: 'user', content: 'hi' },
        assistant(...content),
        { role: 'user', content: [TEXT] },
      ]
      expect(sent(messages, space)).toEqual({
        model: 'm',
        messages: [messages[0], assistant(...expected), messages[2]],
      })
    }
  })

  it('stays when a message has nothing else', () => {
    const messages = [assistant(UNSIGNED, UNSIGNED)]
    expect(sent(messages)).toEqual({ model: 'm', messages })
  })

  it.each([
    ['signed thinking', [SIGNED, TEXT]],
    ['what a tool is called with', [TEXT, CALL]],
    ['another kind of block', [{ ...UNSIGNED, type: 'other' }, TEXT]],
    ['a text that says it', [{ type: 'text', text: '"signature":""' }]],
  ])('is not %s', (_name, content) => {
    const body = new TextEncoder().encode(JSON.stringify({ messages: [assistant(...content)] }))
    expect(drained(unsignedThinkingEdits(body))).toEqual([])
  })

  it('takes little more memory than its body, however much of it there is', () => {
    const content = '{"type":"thinking","signature":""},{},'.repeat(50_000)
    const body = new TextEncoder().encode(`{"messages":[{"role":"assistant","content":[${content}{}]}]}`)
    expect(drained(unsignedThinkingEdits(body)).length).toBeLessThanOrEqual(10_001)
  })
})
