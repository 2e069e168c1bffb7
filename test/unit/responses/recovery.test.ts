import { describe, expect, it } from 'vitest'
import type { ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import type { EmittedEvent } from '../../../src/responses/event-writer.ts'
import { interruptedResponse, terminalEvents } from '../../../src/responses/recovery.ts'
import { checkResponseStream } from '../../harness/conformance.ts'
import { readResponseStream } from '../../harness/response-stream-text.ts'
import { COMPLETED, Emitting, say } from './emitting.ts'

const textOf = (events: readonly EmittedEvent[]) =>
  events
    .map(({ sequence, type, payload }) => `event: ${type}\nid: ${sequence}\ndata: ${payload}\n\n`)
    .join('')

const violationsOf = (events: readonly EmittedEvent[]) =>
  checkResponseStream(readResponseStream(textOf(events)))

/** What the object holds after `count` events, and what it adds when it comes to life again. */
function cutAfter(emitted: readonly EmittedEvent[], count: number) {
  const stored = emitted.slice(0, count)
  return {
    stored,
    ...interruptedResponse(
      stored.map(({ payload }) => payload),
      count,
    ),
  }
}

const TURNS: Array<[name: string, events: ModelEvent[]]> = [
  ['text', [say.text('one '), say.text('two'), say.stop('end')]],
  ['a refusal', [say.refusal('I '), say.refusal("won't"), say.stop('refusal')]],
  [
    'thinking, text, calls',
    [
      say.reasoning('so'),
      say.signature('c2ln'),
      say.reasoning('then'),
      say.text('x'),
      say.citation({ type: 'web_search_result_location', url: 'https://a.example', title: 'A' }, 1),
      say.call(0),
      say.args(0, '{"a"'),
      say.call(1, 'custom_look'),
      say.args(0, ':1}'),
      say.args(1, '{"input":"y"}'),
      say.stop('tool_calls'),
    ],
  ],
]

describe.each(TURNS)('a response of %s that was interrupted', (_name, events) => {
  const emitting = new Emitting()
  emitting.emitter.begin()
  emitting.tell(...events)
  emitting.emitter.endTurn()
  emitting.emitter.settle(COMPLETED)
  const { emitted } = emitting
  const places = emitted.map((_, index) => index + 1)

  it.each(places)('after event %d ends as failed, with everything closed', (count) => {
    const { stored, events: added, response } = cutAfter(emitted, count)
    expect(violationsOf([...stored, ...added])).toEqual([])
    expect(added.slice(-2).map(({ type }) => type)).toEqual(['error', 'response.failed'])
    expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
    expect(response.output.some(({ status }) => status === 'in_progress')).toBe(false)
  })

  it('keeps what was told', () => {
    const { response } = cutAfter(emitted, emitted.length)
    expect(response.output).toEqual(emitting.emitter.response.output)
    expect(response.output_text).toBe(emitting.emitter.response.output_text)
  })
})

it('the end of a response that is known is told once more as it would have been', () => {
  const emitting = new Emitting()
  emitting.emitter.begin()
  emitting.tell(say.text('x'), say.stop('end'))
  emitting.emitter.endTurn()
  const response = emitting.emitter.settle(COMPLETED)
  const told = emitting.emitted.length
  emitting.emitter.terminate()
  expect(terminalEvents(response, told)).toEqual(emitting.emitted.slice(told))
})

it('a log without its first event is no response', () => {
  expect(() => interruptedResponse([], 0)).toThrow()
})
