import { describe, expect, it } from 'vitest'
import type { ChatEncoderOptions } from '../../../../../src/gateway/translation/events/chat-encoder.ts'
import { CompletionEncoder } from '../../../../../src/gateway/translation/events/completion-encoder.ts'
import { PromptEcho } from '../../../../../src/gateway/translation/events/prompt-echo.ts'
import type { ModelEvent } from '../../../../../src/gateway/translation/model-events.ts'
import {
  args,
  call,
  end,
  payloads,
  reasoning,
  refusal,
  signature,
  start,
  stop,
  text,
} from './events-support.ts'

type Json = Record<string, unknown>

const encoder = (more: Partial<ChatEncoderOptions> = {}) =>
  new CompletionEncoder({
    modelId: 'model-1',
    usageRequested: false,
    nowSeconds: 1_800_000_000,
    ...more,
  })
const HEAD = { id: 'cmpl-x-1', object: 'text_completion', created: 1_700_000_000, model: 'model-1' }
const part = (words: string, finishReason: string | null = null, index = 0) => ({
  text: words,
  index,
  logprobs: null,
  finish_reason: finishReason,
})
const usage: ModelEvent = {
  type: 'usage',
  usage: { input: 3, cacheRead: 0, cacheWrite5Minutes: 0, cacheWrite1Hour: 0, output: 2, reasoning: 0 },
}

const rows: Array<[name: string, events: ModelEvent[], parts: Json[]]> = [
  ['text', [text('a'), text('b'), stop('end')], [part('a'), part('b'), part('', 'stop')]],
  ['nothing', [stop('length')], [part('', 'length')]],
  ['no reason of its end', [text('a')], [part('a'), part('', 'stop')]],
  ['not a single event', [], [part('', 'stop')]],
  ['a refusal as text', [refusal('No.'), stop('refusal')], [part('No.'), part('', 'content_filter')]],
  [
    'no reasoning, no calls and no sources',
    [
      reasoning('Hm.'),
      signature('s'),
      { type: 'redacted_reasoning', choice: 0, data: 'x' },
      text('a'),
      { type: 'citation', choice: 0, citation: { url: 'u' }, length: 1 },
      call(0, 'look'),
      args(0, '{}'),
      stop('tool_calls'),
    ],
    [part('a'), part('', 'stop')],
  ],
  ['an end that is repeated', [text('a'), stop('end'), stop('end')], [part('a'), part('', 'stop')]],
  [
    'one choice after the other',
    [text('a'), stop('end'), text('b', 1), stop('length', { choice: 1 })],
    [part('a'), part('', 'stop'), part('b', null, 1), part('', 'length', 1)],
  ],
]

describe('a stream to a caller of completions', () => {
  it.each(rows)('has %s', (_name, events, parts) => {
    const chunks = parts.map((choice) => ({ ...HEAD, choices: [choice] }))
    expect(payloads(encoder(), [start(), ...events, end])).toEqual([...chunks, '[DONE]'])
  })

  it('sends usage on request', () => {
    const events = [start(), text('a'), stop('end'), usage, end]
    const expected = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
    expect(payloads(encoder({ usageRequested: true }), events).slice(-2)).toMatchObject([
      { ...HEAD, choices: [], usage: expected },
      '[DONE]',
    ])
    expect(JSON.stringify(payloads(encoder(), events))).not.toContain('usage')
  })
})

describe('a whole completion', () => {
  it('is what the stream would have been', () => {
    const events = [start(), text('a'), text('b', 1), text('c'), stop('end'), usage, end]
    expect(encoder().answer(events)).toMatchObject({
      ...HEAD,
      choices: [part('ac', 'stop'), part('b', 'stop', 1)],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    })
  })

  it.each([
    ['chatcmpl-1', /^cmpl-1$/],
    ['msg_1', /^cmpl-msg_1$/],
    ['', /^cmpl-[0-9A-Za-z]{22}$/],
  ])('has an id of its own form for "%s"', (id, expected) => {
    expect(encoder().answer([start(id), end]).id).toMatch(expected)
  })
})

describe('an echoed prompt', () => {
  const echoed = (prompt: string, ...events: ModelEvent[]) => {
    const echo = new PromptEcho(prompt)
    return events.flatMap((event) => echo.events(event))
  }

  it('stands before the text of each choice, once', () => {
    const events = [start(), text('a'), text('b'), text('c', 1), stop('end'), stop('end', { choice: 1 }), end]
    expect(echoed('P', ...events)).toEqual([
      start(),
      text('P'),
      text('a'),
      text('b'),
      text('P', 1),
      text('c', 1),
      stop('end'),
      stop('end', { choice: 1 }),
      end,
    ])
  })

  it.each<[string, ModelEvent[], ModelEvent[]]>([
    ['a choice that says nothing', [stop('length'), end], [text('P'), stop('length'), end]],
    ['an answer without choices', [start(), end], [start(), text('P'), end]],
    ['a refusal', [refusal('No.'), end], [text('P'), refusal('No.'), end]],
    [
      'events that completions cannot express',
      [reasoning('Hm.'), text('a')],
      [reasoning('Hm.'), text('P'), text('a')],
    ],
  ])('stands before %s', (_what, events, expected) => {
    expect(echoed('P', ...events)).toEqual(expected)
  })

  it('that is empty adds nothing', () => {
    const events = [start(), text('a'), stop('end'), end]
    expect(echoed('', ...events)).toEqual(events)
  })
})
