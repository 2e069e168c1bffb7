import { describe, expect, it } from 'vitest'
import { type BodyMembers, changeMembers } from '../../../src/gateway/protocols/body-members.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import { requestEdits } from '../../../src/gateway/protocols/request-edits.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'

const MESSAGES = [{ role: 'user', content: 'Hi' }]

const RULES: BodyMembers = {
  taken: new Set(['max_tokens', 'messages', 'seed', 'tools', 'kind']),
  dropped: new Set(['seed']),
  moved: new Set(['model', 'stream']),
  refused: new Set(['container']),
  renamed: { kind: 'sort' },
  added: { version: '1', max_tokens: 7 },
}

/** The body as it is sent by the byte edits of a call between equal protocols. */
function sentBytes(request: object, bodyMembers: BodyMembers, spaces?: number) {
  const source = new TextEncoder().encode(JSON.stringify(request, null, spaces))
  const outline = drained(messages.outline(source))
  const target = { upstreamModel: 'other', capabilities: [], bodyMembers }
  const { body: edits, dropped } = drained(requestEdits(outline, messages, target))
  return { body: JSON.parse(new TextDecoder().decode(joinBytes(applyEdits(source, edits).pieces))), dropped }
}

const REQUEST = { model: 'm', stream: true, max_tokens: 5, messages: MESSAGES }
const FORMS = [
  ['bytes', sentBytes],
  ['bytes with spaces', (request: object, rules: BodyMembers) => sentBytes(request, rules, 2)],
  ['a parsed body', changeMembers],
] as const

describe.each(FORMS)('members of a body at one provider, as %s', (_, change) => {
  it('are left out, renamed, added and named', () => {
    const request = { ...REQUEST, kind: 'a', seed: 1, foo_bar: { a: [1] }, empty: null, metadata: undefined }
    expect(change(request, RULES)).toEqual({
      body: { version: '1', max_tokens: 7, messages: MESSAGES, sort: 'a' },
      dropped: ['seed', 'foo_bar'],
    })
  })

  it('stand in any order', () => {
    const names = ['stream', 'foo', 'messages', 'model', 'seed', 'max_tokens', 'kind']
    const values = { ...REQUEST, foo: 'x', seed: 1, kind: 'b' } as Record<string, unknown>
    for (let turn = 0; turn < names.length; turn++) {
      const order = [...names.slice(turn), ...names.slice(0, turn)]
      const { body } = change(Object.fromEntries(order.map((name) => [name, values[name]])), RULES)
      expect(body).toEqual({ version: '1', max_tokens: 7, messages: MESSAGES, sort: 'b' })
    }
  })

  it('are refused where the answer would be another one without them', () => {
    expect(() => change({ ...REQUEST, container: 'c' }, RULES)).toThrow(/^container: the provider/)
    expect(change({ ...REQUEST, container: null }, RULES).dropped).toEqual([])
  })

  it('stay as they are without rules', () => {
    expect(change({ ...REQUEST, model: 'other', foo: 1 }, {})).toEqual({
      body: { ...REQUEST, model: 'other', foo: 1 },
      dropped: [],
    })
  })
})

it('keeps edits within members that are left out from the bytes that follow', () => {
  const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
  const { body } = sentBytes({ ...REQUEST, tools }, { moved: new Set(['tools', 'model']) })
  expect(body).toEqual({ stream: true, max_tokens: 5, messages: MESSAGES })
})

it('leave the request for usage on a stream of chat completions, wherever the left-out member stands', () => {
  const values = { model: 'm', presence_penalty: 0, stream: true, messages: MESSAGES }
  const names = Object.keys(values) as Array<keyof typeof values>
  for (let turn = 0; turn < names.length; turn++) {
    const order = [...names.slice(turn), ...names.slice(0, turn)]
    const request = Object.fromEntries(order.map((name) => [name, values[name]]))
    const source = new TextEncoder().encode(JSON.stringify(request))
    const outline = drained(chatCompletions.outline(source))
    const bodyMembers = { dropped: new Set(['presence_penalty']) }
    const target = { upstreamModel: 'm', capabilities: [], bodyMembers }
    const { body: edits } = drained(requestEdits(outline, chatCompletions, target))
    const sent = new TextDecoder().decode(joinBytes(applyEdits(source, edits).pieces))
    expect(JSON.parse(sent)).toEqual({
      ...{ model: 'm', stream: true, messages: MESSAGES },
      stream_options: { include_usage: true },
    })
  }
})
