import { describe, expect, it } from 'vitest'
import { assistant, call, fromChat, fromMessages, refusal, text, toolMessage, user } from './requests.ts'
import { answers, calls, item, toChat, toMessages } from './responses.ts'

const list = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index))

describe('lists longer than a call takes arguments', () => {
  // A call takes about 120,000.
  const MANY = 150_000
  const parts = list(MANY, () => text('a'))
  const inputs = list(MANY, () => ({ type: 'input_text', text: 'a' }))

  it.each<[string, () => unknown]>([
    ['parts of two messages of one role', () => fromChat({ messages: [user(parts), user(parts)] })],
    ['parts of the assistant', () => fromChat({ messages: [user('a'), assistant(parts), user('b')] })],
    [
      'parts of a result',
      () =>
        fromChat({
          messages: [
            user('q'),
            assistant(null, { tool_calls: [call('a')] }),
            toolMessage('a', parts),
            toolMessage('a', parts),
          ],
        }),
    ],
    [
      'parts of system messages',
      () => fromChat({ messages: [{ role: 'system', content: parts }, user('a')] }),
    ],
    ['parts of an item', () => toChat({ input: [item('user', inputs), item('assistant', inputs)] })],
    [
      'parts of an output',
      () =>
        toMessages({
          input: [item('user', inputs), calls('a'), answers('a', inputs), item('system', inputs)],
        }),
    ],
    ['items', () => toMessages({ input: list(MANY, () => item('user', 'a')) })],
    ['blocks', () => fromMessages({ messages: [user(parts)], system: parts })],
    [
      'blocks of a document',
      () =>
        fromMessages({
          messages: [user([{ type: 'document', source: { type: 'content', content: parts } }])],
        }),
    ],
    [
      'media of a result',
      () => {
        const image = { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }
        const use = { type: 'tool_use', id: 'a', name: 'look', input: {} }
        const shown = { type: 'tool_result', tool_use_id: 'a', content: list(MANY, () => image) }
        return fromMessages({ messages: [user('q'), assistant([use]), user([shown])] })
      },
    ],
  ])('%s', (_case, translate) => {
    expect(refusal(translate)).toBe('not refused')
  })
})
