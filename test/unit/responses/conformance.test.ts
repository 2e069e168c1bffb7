import { describe, expect, it } from 'vitest'
import { checkResponseStream, rulesOf } from '../../harness/conformance.ts'
import { readResponseStream } from '../../harness/response-stream-text.ts'
import { FAILED, INCOMPLETE, ITEM_CASES, PART_CASES, STREAM_CASES, WHOLE } from './broken-stream-cases.ts'
import { BrokenStream } from './broken-streams.ts'

const CASES = [...STREAM_CASES, ...ITEM_CASES, ...PART_CASES]

describe('the checker of response streams', () => {
  it('finds nothing in streams that hold', () => {
    for (const stream of [WHOLE, FAILED, INCOMPLETE]) expect(checkResponseStream(stream)).toEqual([])
  })

  it.each(CASES)('finds %s: %s', (rule, _what, breaks, from = WHOLE) => {
    const stream = new BrokenStream(from)
    breaks(stream)
    expect(rulesOf(checkResponseStream(stream.events))).toEqual([rule])
  })

  it('has a broken stream for each of its rules', () => {
    const broken = new Set(CASES.map(([rule]) => rule))
    expect(broken.size).toBe(18)
  })

  it('finds that there is nothing', () => {
    expect(rulesOf(checkResponseStream([]))).toEqual(['terminal'])
  })

  it('accepts a tail of a stream, and finds its faults', () => {
    const after = 12
    const tail = WHOLE.slice(after)
    expect(checkResponseStream(tail, { after })).toEqual([])
    expect(rulesOf(checkResponseStream(tail, { after: after + 1 }))).toEqual(['numbering'])
    expect(rulesOf(checkResponseStream(tail.slice(0, -1), { after }))).toEqual(['terminal'])
    const broken = new BrokenStream(tail)
    Object.assign((broken.last.output as object[])[3] ?? {}, { arguments: '{}' })
    expect(rulesOf(checkResponseStream(broken.events, { after }))).toEqual(['snapshot'])
  })

  it('takes a condensed stream only where one is expected', () => {
    const events = WHOLE.filter(({ event }) => !/delta/.test(event))
    expect(checkResponseStream(events, { condensed: true })).toEqual([])
    expect(checkResponseStream(events.slice(5), { after: 5, condensed: true })).toEqual([])
    const last = Number(events.at(-1)?.data.sequence_number)
    expect(rulesOf(checkResponseStream(events.slice(-1), { after: last, condensed: true }))).toEqual([
      'numbering',
    ])
    expect(rulesOf(checkResponseStream(events.toReversed(), { condensed: true }))).toContain('numbering')
    expect(rulesOf(checkResponseStream(events)).length).toBeGreaterThan(0)
  })
})

describe('the reader of response streams', () => {
  const frame = 'id: 1\nevent: error\ndata: {"type":"error","sequence_number":1}\n\n'

  it('gives the events, without comments', () => {
    const data = { type: 'error', sequence_number: 1 }
    expect(readResponseStream(`: heartbeat\n\n${frame}: heartbeat\n\n`)).toEqual([
      { id: '1', event: 'error', data },
    ])
  })

  it.each([
    ['a frame that is not whole', frame.slice(0, -1)],
    ['two events in one frame', `${frame.trimEnd()}\n${frame}`],
    ['a frame without an id', frame.slice(6)],
    ['a frame without an event', frame.replace('event: error\n', '')],
    ['an event that is not the type', frame.replace('event: error', 'event: response.failed')],
    ['a payload that is no JSON', frame.replace('}', '')],
    ['a payload on two lines', frame.replace(',"seq', ',\ndata: "seq')],
    ['the end of another surface', `${frame}data: [DONE]\n\n`],
    ['another line', frame.replace('id: 1', 'retry: 1')],
  ])('refuses %s', (_what, text) => {
    expect(() => readResponseStream(text)).toThrow()
  })
})
