import { describe, expect, it } from 'vitest'
import { NO_USAGE } from '../../../src/calls/usage.ts'
import type { OpenTurn } from '../../../src/gateway/model-turn.ts'
import type { ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import { EventWriter } from '../../../src/responses/emitter/event-writer.ts'
import { interruptedResponse } from '../../../src/responses/engine/recovery.ts'
import type { EmittedEvent } from '../../../src/responses/model/events.ts'
import { checkResponseStream } from '../../harness/conformance.ts'
import { readResponseStream } from '../../harness/response-stream-text.ts'
import { COMPLETED, Emitting, say } from './emitting.ts'

const textOf = (events: readonly EmittedEvent[]) =>
  events
    .map(({ sequence, type, payload }) => `event: ${type}\nid: ${sequence}\ndata: ${payload}\n\n`)
    .join('')

const violationsOf = (events: readonly EmittedEvent[]) =>
  checkResponseStream(readResponseStream(textOf(events)))

const NO_CALLS = { usage: null, openCall: null }
const NOW = 1_800_000_000_000

/** The stored events after a restart behind event `count`, and the events that end the response. */
function cutAfter(
  emitted: readonly EmittedEvent[],
  count: number,
  calls: Parameters<typeof interruptedResponse>[2] = NO_CALLS,
) {
  const stored = emitted.slice(0, count)
  return {
    stored,
    ...interruptedResponse(
      stored.map(({ payload }) => payload),
      count,
      calls,
      NOW,
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
  [
    'a call of a hosted tool',
    [say.text('x'), say.call(0, 'mcp_look'), say.args(0, '{"a"'), say.args(0, ':1}'), say.stop('tool_calls')],
  ],
]

describe.each(TURNS)('a response of %s that was interrupted', (_name, events) => {
  const emitting = new Emitting()
  emitting.emitter.begin()
  emitting.feed(...events)
  emitting.emitter.endTurn()
  emitting.emitter.end(COMPLETED)
  const { emitted } = emitting
  const places = emitted.map((_, index) => index + 1)

  it.each(places)('after event %d ends as failed, with everything closed', (count) => {
    const { stored, events: added, response } = cutAfter(emitted, count)
    expect(violationsOf([...stored, ...added])).toEqual([])
    expect(added.slice(-2).map(({ type }) => type)).toEqual(['error', 'response.failed'])
    expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
    expect(response.output.some(({ status }) => status === 'in_progress')).toBe(false)
  })

  it('keeps the output that was emitted', () => {
    const { response } = cutAfter(emitted, emitted.length)
    expect(response.output).toEqual(emitting.emitter.response.output)
    expect(response.output_text).toBe(emitting.emitter.response.output_text)
  })
})

it('the stored end of a response is emitted as the emitter would have emitted it', () => {
  const emitting = new Emitting()
  emitting.emitter.begin()
  emitting.feed(say.text('x'), say.stop('end'))
  emitting.emitter.endTurn()
  const response = emitting.emitter.end(COMPLETED)
  const told = emitting.emitted.length
  emitting.emitter.terminate()
  const events: EmittedEvent[] = []
  new EventWriter(told, (event) => events.push(event)).writeEnd(response)
  expect(events).toEqual(emitting.emitted.slice(told))
})

it('a log without its first event is refused', () => {
  expect(() => interruptedResponse([], 0, NO_CALLS, NOW)).toThrow()
})

describe('the usage of a response that was interrupted', () => {
  const usage = { ...NO_USAGE, input: 100, output: 10 }
  const open = {
    call: { opening: { at: NOW } },
    provider: null,
    basis: {
      prices: {},
      bounds: { inputTokens: 1_000, outputTokens: 50, mostInput: 11_000, reserve: 1_000 },
      requestBytes: 300,
      charged: true,
    },
  } as unknown as OpenTurn
  const emitting = new Emitting()
  emitting.emitter.begin()
  emitting.feed(say.text('a first turn '.repeat(10)))
  const after = emitting.emitted.length
  emitting.feed(say.text('漢字'), say.text('x'))
  const { emitted } = emitting

  it('is that of the turns that ended, and an estimate of the one that did not', () => {
    const { response, call } = cutAfter(emitted, emitted.length, { usage, openCall: { open, after } })
    // Seven bytes are three tokens, and the request was 300 bytes.
    expect(call?.outcome.usage).toEqual({ ...NO_USAGE, input: 100, output: 3 })
    expect(response.usage).toMatchObject({ input_tokens: 200, output_tokens: 13, total_tokens: 213 })
  })

  it('counts the input of a turn without output', () => {
    const { response, call } = cutAfter(emitted, after, { usage: null, openCall: { open, after } })
    expect(call?.outcome.usage).toEqual({ ...NO_USAGE, input: 100 })
    expect(response.usage).toMatchObject({ input_tokens: 100, output_tokens: 0 })
  })

  it('never passes what the call was bound to', () => {
    const bounds = { inputTokens: 7, outputTokens: 2, mostInput: 7, reserve: 1 }
    const openCall = { open: { ...open, basis: { ...open.basis, bounds } }, after: 0 }
    expect(cutAfter(emitted, emitted.length, { usage: null, openCall }).response.usage).toMatchObject({
      input_tokens: 7,
      output_tokens: 2,
    })
  })

  it('is what was charged when no call was open', () => {
    const { response, call } = cutAfter(emitted, emitted.length, { usage, openCall: null })
    expect(call).toBeNull()
    expect(response.usage).toMatchObject({ input_tokens: 100, output_tokens: 10 })
  })
})
