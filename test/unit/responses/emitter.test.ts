import { describe, expect, it } from 'vitest'
import { replayResponse } from '../../../src/responses/emitter/replay.ts'
import type { ResponseObject } from '../../../src/wire/responses.ts'
import { COMPLETED, Emitting, emitOne, say } from './emitting.ts'

const BEGUN = ['created', 'in_progress']
const TEXT = ['content_part.added', 'output_text.delta', 'output_text.done', 'content_part.done']

describe('a message', () => {
  it('has events for its part, its deltas and its whole text', () => {
    const emitting = emitOne([say.text('Hel'), say.text(''), say.text('lo "\n😀')])
    expect(emitting.types).toEqual([
      ...BEGUN,
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      ...TEXT.slice(2),
      'output_item.done',
      'completed',
    ])
    expect(emitting.of('output_text.delta').map(({ delta }) => delta)).toEqual(['Hel', 'lo "\n😀'])
    expect(emitting.of('output_text.done')).toMatchObject([{ text: 'Hello "\n😀', logprobs: [] }])
    expect(emitting.emitter.response.output_text).toBe('Hello "\n😀')
    expect(emitting.violations).toEqual([])
  })

  it('begins each payload with its type and its number', () => {
    const { emitted } = emitOne([say.text('a'), say.call(0), say.reasoning('b')])
    for (const { sequence, type, payload } of emitted) {
      expect(payload.startsWith(`{"type":"${type}","sequence_number":${sequence},`)).toBe(true)
      expect(JSON.parse(payload)).toMatchObject({ type, sequence_number: sequence })
    }
    expect(emitted.map(({ sequence }) => sequence)).toEqual(emitted.map((_, index) => index + 1))
  })

  it('delays only deltas after the first one of a part', () => {
    const { emitted } = emitOne([
      say.text('a'),
      say.text('b'),
      say.call(0),
      say.args(0, '{'),
      say.args(0, '}'),
    ])
    const waiting = emitted
      .filter(({ boundary }) => !boundary)
      .map(({ payload }) => JSON.parse(payload).delta)
    expect(waiting).toEqual(['b', '}'])
  })

  it('takes a refusal as a part of its own, and text after it as another', () => {
    const emitting = emitOne([
      say.text('Well.'),
      say.refusal('I '),
      say.refusal('will not.'),
      say.text('Sorry.'),
    ])
    expect(emitting.emitter.response.output).toMatchObject([
      {
        content: [
          { type: 'output_text', text: 'Well.' },
          { type: 'refusal', refusal: 'I will not.' },
          { type: 'output_text', text: 'Sorry.' },
        ],
      },
    ])
    expect(emitting.of('refusal.done')).toMatchObject([{ refusal: 'I will not.', content_index: 1 }])
    expect(emitting.emitter.response.output_text).toBe('Well.Sorry.')
    expect(emitting.violations).toEqual([])
  })

  it('distinguishes a content filter from a refusal', () => {
    const ends = [
      [say.stop('refusal')],
      [say.text('So far'), say.stop('refusal')],
      [say.stop('refusal', 'Not allowed.')],
      [say.refusal('No.'), say.stop('refusal')],
      [say.refusal('No.'), say.stop('end')],
    ].map((events) => {
      const { emitter } = new Emitting().feed(...events)
      const { filtered } = emitter.endTurn()
      const [item] = emitter.response.output
      return [filtered, item && 'status' in item ? item.status : null]
    })
    expect(ends).toEqual([
      [true, null],
      [true, 'incomplete'],
      [false, 'completed'],
      [false, 'completed'],
      [false, 'completed'],
    ])
  })

  it('takes the explanation of a refusal for one, unless the model gave it itself', () => {
    const explained = emitOne([say.stop('refusal', 'Not allowed.')])
    expect(explained.emitter.response.output).toMatchObject([{ content: [{ refusal: 'Not allowed.' }] }])
    const refused = emitOne([say.refusal('No.'), say.stop('refusal', 'Not allowed.')])
    expect(refused.emitter.response.output).toMatchObject([{ content: [{ refusal: 'No.' }] }])
  })

  it('leaves other choices out', () => {
    const emitting = emitOne([say.text('one'), { type: 'text', choice: 1, text: 'two' }])
    expect(emitting.emitter.response.output_text).toBe('one')
  })
})

describe('citations', () => {
  const source = { type: 'web_search_result_location', url: 'https://a.example', title: 'A', cited_text: 'x' }

  it('become annotations over code points of their part', () => {
    const emitting = emitOne([
      say.text('😀 is '),
      say.text('😀😀!'),
      say.citation(source, 5),
      say.text(' Yes.'),
    ])
    const annotation = { type: 'url_citation', start_index: 5, end_index: 8, url: source.url, title: 'A' }
    expect(emitting.of('output_text.annotation.added')).toMatchObject([{ annotation_index: 0, annotation }])
    expect(emitting.of('content_part.done')).toMatchObject([{ part: { annotations: [annotation] } }])
    expect([...'😀 is 😀😀! Yes.'].slice(5, 8).join('')).toBe('😀😀!')
    expect(emitting.violations).toEqual([])
  })

  it('are left out without a URL or without text, and never begin before their part', () => {
    const emitting = emitOne([
      say.citation(source, 3),
      say.text('ab'),
      say.citation({ type: 'char_location', document_title: 'A' }, 2),
      say.citation(source, 3),
    ])
    expect(emitting.of('output_text.annotation.added')).toMatchObject([
      { annotation: { start_index: 0, end_index: 2 } },
    ])
    expect(emitting.violations).toEqual([])
  })
})

describe('reasoning', () => {
  it('is one item for each run, with a summary part for each block', () => {
    const sealed: unknown[] = []
    const emitting = new Emitting({ seal: (secret) => `sealed ${sealed.push(structuredClone(secret))}` })
    emitting.emitter.origin = 'anthropic'
    emitting.emitter.begin()
    emitting.feed(
      say.reasoning('fir'),
      say.reasoning('st'),
      say.signature('s1'),
      say.reasoning('second'),
      say.redacted('r'),
      say.text('Hm.'),
      say.reasoning('third'),
      say.signature('s3'),
    )
    emitting.emitter.endTurn()
    const secrets = [
      [
        { text: 'first', signature: 's1', origin: 'anthropic' },
        { text: 'second', origin: 'anthropic' },
        { text: '', redacted: 'r', origin: 'anthropic' },
      ],
      [{ text: 'third', signature: 's3', origin: 'anthropic' }],
    ]
    expect(sealed).toEqual(secrets)
    const { output } = emitting.emitter.end(COMPLETED)
    expect(output).toMatchObject([
      { type: 'reasoning', summary: [{ text: 'first' }, { text: 'second' }], encrypted_content: 'sealed 1' },
      { type: 'message' },
      { type: 'reasoning', summary: [{ text: 'third' }], encrypted_content: 'sealed 2' },
    ])
    expect([...emitting.emitter.reasoningSecrets]).toEqual([
      [output[0]?.id, secrets[0]],
      [output[2]?.id, secrets[1]],
    ])
    emitting.emitter.terminate()
    expect(emitting.violations).toEqual([])
  })

  it('has an item without a summary where nothing of it can be read', () => {
    const emitting = emitOne([say.signature('s'), say.text('a'), say.redacted('r')])
    expect(emitting.emitter.response.output).toMatchObject([
      { type: 'reasoning', summary: [], status: 'completed' },
      { type: 'message' },
      { type: 'reasoning', summary: [], status: 'completed' },
    ])
    expect(emitting.emitter.response.output[0]).not.toHaveProperty('encrypted_content')
    expect([...emitting.emitter.reasoningSecrets.values()]).toEqual([
      [{ text: '', signature: 's' }],
      [{ text: '', redacted: 'r' }],
    ])
    expect(emitting.violations).toEqual([])
  })

  it('that is cut off has that status in its part', () => {
    const emitting = emitOne([say.reasoning('I th'), say.stop('length')])
    expect(emitting.of('reasoning_summary_part.done')).toMatchObject([{ status: 'incomplete' }])
    expect(emitting.emitter.response.output).toMatchObject([{ status: 'incomplete' }])
    expect(emitting.violations).toEqual([])
  })
})

describe('the end', () => {
  it.each(['length', 'context_window'] as const)(
    'by %s leaves what was being written incomplete',
    (reason) => {
      const emitting = emitOne(
        [
          say.call(0),
          say.args(0, '{}'),
          say.call(1),
          say.args(1, '{"a'),
          say.call(2),
          say.args(2, '{}'),
          say.stop(reason),
        ],
        { ...COMPLETED, status: 'incomplete', reason: 'max_output_tokens' },
      )
      expect(emitting.emitter.response.output.map(({ status }) => status)).toEqual([
        'completed',
        'incomplete',
        'completed',
      ])
      expect(emitting.violations).toEqual([])
    },
  )

  it('returns how the turn ended, and the next one begins anew', () => {
    const usage = {
      input: 1,
      cacheRead: 0,
      cacheWrite5Minutes: 0,
      cacheWrite1Hour: 0,
      output: 2,
      reasoning: 0,
    }
    const { emitter } = new Emitting().feed(
      { type: 'start', id: 'x', model: 'm', createdSeconds: null, usage: { ...usage, output: 0 } },
      say.text('a'),
      say.stop('refusal', 'why'),
      { type: 'usage', usage },
      { type: 'end' },
    )
    expect(emitter.turnUsage).toEqual(usage)
    expect(emitter.endTurn()).toMatchObject({ stop: 'refusal', filtered: false, calls: [] })
    expect(emitter.turnUsage).toBeNull()
    expect(emitter.endTurn()).toMatchObject({ stop: null, filtered: false, calls: [] })
    emitter.model({ type: 'start', id: 'x', model: 'm', createdSeconds: null, usage })
    expect(emitter.turnUsage).toEqual(usage)
  })

  it('closes what is open, and is emitted once, after the response was ended', () => {
    const emitting = new Emitting()
    emitting.emitter.begin()
    emitting.feed(say.text('half'), say.call(0), say.args(0, '{"a":1'))
    expect(() => emitting.emitter.terminate()).toThrow('ended')
    const final = emitting.emitter.end({ ...COMPLETED, status: 'incomplete', reason: 'cancelled' })
    expect(final).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'cancelled' },
      completed_at: null,
      usage: { total_tokens: 0 },
      output: [{ status: 'completed' }, { status: 'incomplete', arguments: '{"a":1' }],
    })
    expect(emitting.types).not.toContain('completed')
    expect(emitting.emitter.end(COMPLETED)).toEqual(final)
    emitting.emitter.begin()
    emitting.feed(say.text('late'))
    emitting.emitter.terminate()
    const { length } = emitting.emitted
    emitting.emitter.begin()
    emitting.feed(say.text('later'))
    emitting.emitter.endTurn()
    emitting.emitter.terminate()
    expect(emitting.emitted).toHaveLength(length)
    expect(JSON.parse(emitting.emitted.at(-1)?.payload ?? '').response).toEqual(final)
    expect(emitting.violations).toEqual([])
  })

  it('of a failed response is an error, then response.failed', () => {
    const error = { code: 'upstream_error', message: 'It broke.' }
    const emitting = emitOne([say.text('a')], { ...COMPLETED, status: 'failed', error })
    expect(emitting.stream.at(-2)?.data).toEqual({
      type: 'error',
      sequence_number: emitting.emitted.length - 1,
      error: { message: 'It broke.', type: 'server_error', code: 'stream_error' },
      param: null,
    })
    expect(emitting.stream.at(-1)?.data).toMatchObject({ response: { status: 'failed', error } })
    expect(emitting.violations).toEqual([])
  })
})

describe('the response', () => {
  it('is whole at any moment, and its copies do not change', () => {
    const emitting = new Emitting().feed(say.text('a'))
    const { response } = emitting.emitter
    emitting.feed(say.text('b'))
    expect(response).toMatchObject({
      status: 'in_progress',
      output_text: 'a',
      output: [{ content: [{ text: 'a' }] }],
    })
    expect(emitting.emitter.response.output).toMatchObject([
      { status: 'in_progress', content: [{ text: 'ab' }] },
    ])
  })

  it('goes on after the events and the items that there are', () => {
    const first = emitOne([say.text('a'), say.call(0)])
    const { response } = first.emitter
    const collector = new Emitting()
    const writer = collector.writerAfter(first.emitted.length)
    const payloads = first.emitted.map(({ payload }) => payload)
    const emitting = new Emitting({ ...replayResponse(payloads, writer), writer })
    emitting.feed(say.text('b'), say.call(0))
    expect(collector.of('output_item.added')).toMatchObject([
      { output_index: 2, sequence_number: first.emitted.length + 1 },
      { output_index: 3 },
    ])
    expect(emitting.emitter.response.output_text).toBe('ab')
    expect(callIdsOf(emitting.emitter.response)).toHaveLength(2)
    expect(new Set(callIdsOf(emitting.emitter.response)).size).toBe(2)
    expect(response.output).toHaveLength(2)
  })
})

const callIdsOf = ({ output }: ResponseObject) =>
  output.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : []))
