import { describe, expect, it } from 'vitest'
import {
  CompletionEncoder,
  type CompletionEncoderOptions,
} from '../../../../../src/gateway/translation/events/completion-encoder.ts'
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

const encoder = (more: Partial<CompletionEncoderOptions> = {}) =>
  new CompletionEncoder({
    modelId: 'model-1',
    usageAsked: false,
    nowSeconds: 1_800_000_000,
    echoed: null,
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

  it('echoes the prompt of each choice before its text', () => {
    const events = [start(), text('a'), stop('end'), text('b', 1), stop('end', { choice: 1 }), end]
    const choices = (payloads(encoder({ echoed: ['P', 'Q'] }), events).slice(0, -1) as Json[]).map(
      (chunk) => (chunk.choices as Json[])[0],
    )
    expect(choices).toEqual([
      part('P'),
      part('a'),
      part('', 'stop'),
      part('Q', null, 1),
      part('b', null, 1),
      part('', 'stop', 1),
    ])
  })

  it('tells usage to callers who asked', () => {
    const events = [start(), text('a'), stop('end'), usage, end]
    const told = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
    expect(payloads(encoder({ usageAsked: true }), events).slice(-2)).toMatchObject([
      { ...HEAD, choices: [], usage: told },
      '[DONE]',
    ])
    expect(JSON.stringify(payloads(encoder(), events))).not.toContain('usage')
  })
})

describe('a whole completion', () => {
  it('is what the stream would have been', () => {
    const events = [start(), text('a'), text('b', 1), text('c'), stop('end'), usage, end]
    expect(encoder({ echoed: ['P', 'Q'] }).answer(events)).toMatchObject({
      ...HEAD,
      choices: [part('Pac', 'stop'), part('Qb', 'stop', 1)],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    })
  })

  it('echoes one prompt for all of its choices', () => {
    const events = [start(), text('a'), text('b', 1), text('c', 2), end]
    const { choices } = encoder({ echoed: ['P', 'Q'], choicesPerPrompt: 2 }).answer(events)
    expect((choices as Json[]).map((choice) => choice.text)).toEqual(['Pa', 'Pb', 'Qc'])
  })

  it.each([
    ['chatcmpl-1', /^cmpl-1$/],
    ['msg_1', /^cmpl-msg_1$/],
    ['', /^cmpl-[0-9A-Za-z]{22}$/],
  ])('has an id of its own form for "%s"', (id, expected) => {
    expect(encoder().answer([start(id), end]).id).toMatch(expected)
  })
})
