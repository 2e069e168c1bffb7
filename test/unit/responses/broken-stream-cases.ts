import type { Rule } from '../../harness/conformance-rules.ts'
import type { BrokenStream } from './broken-streams.ts'
import { COMPLETED, emitOne, say } from './emitting.ts'

const SOURCE = { url: 'https://a.example', title: 'A' }

/** Items: 0 reasoning, 1 message of text and refusal, 2 and 3 functions, 4 a custom tool, 5 message. */
export const WHOLE = emitOne(
  [
    say.reasoning('first'),
    say.signature('s'),
    say.reasoning('second'),
    say.text('Hello '),
    say.text('world'),
    say.citation(SOURCE, 5),
    say.citation(SOURCE, 3),
    say.refusal('no'),
    say.call(0, 'look'),
    say.call(1, 'find'),
    say.args(1, '{"b":2}'),
    say.args(0, '{"a":1}'),
    say.call(2, 'custom'),
    say.args(2, '{"input":"x"}'),
    say.text('Bye'),
  ],
  COMPLETED,
  { seal: () => 'sealed' },
).stream
export const FAILED = emitOne([say.text('half')], {
  ...COMPLETED,
  status: 'failed',
  error: { code: 'stream_error', message: 'It broke.' },
}).stream
export const INCOMPLETE = emitOne([say.call(0)], {
  ...COMPLETED,
  status: 'incomplete',
  reason: 'tool_use',
}).stream

/** A way to break one rule and no other. */
type Case = [rule: Rule, what: string, breaks: (stream: BrokenStream) => unknown, from?: typeof WHOLE]

const part = (item: Record<string, unknown>, index = 0, list = 'content') =>
  (item[list] as Array<Record<string, unknown>>)[index] ?? {}
const DELTA = 'output_text.delta'

/** Faults of the stream and its response. */
export const STREAM_CASES: Case[] = [
  ['frame', 'an id line that is not the number', ({ events }) => Object.assign(events[4] ?? {}, { id: '9' })],
  [
    'frame',
    'an event line that is not the type',
    ({ events }) => Object.assign(events[5] ?? {}, { event: 'x' }),
  ],
  [
    'numbering',
    'a number left out',
    ({ events }) => {
      for (const event of events.slice(9)) event.data.sequence_number = Number(event.id) + 1
      for (const event of events) event.id = String(event.data.sequence_number)
    },
  ],
  [
    'numbering',
    'numbers from 0 on',
    ({ events }) => {
      for (const event of events) event.data.sequence_number = Number(event.id) - 1
      for (const event of events) event.id = String(event.data.sequence_number)
    },
  ],
  [
    'numbering',
    'a number twice',
    ({ events }) => {
      events.splice(9, 1, { event: events[9]?.event ?? '', data: { ...events[9]?.data, sequence_number: 9 } })
    },
  ],
  ['lifecycle', 'no response.created', (stream) => stream.drop('created')],
  ['lifecycle', 'no response.in_progress', (stream) => stream.drop('in_progress')],
  ['lifecycle', 'the first two changed places', (stream) => stream.move('created', 0, ['in_progress', 0])],
  ['lifecycle', 'a second beginning', (stream) => stream.repeat('in_progress', 0, ['output_item.done', 0])],
  [
    'lifecycle',
    'a response that begins with output',
    (stream) => Object.assign(stream.data('created').response ?? {}, { output: stream.last.output }),
  ],
  ['terminal', 'no end', (stream) => stream.drop('completed')],
  ['terminal', 'two ends', (stream) => stream.repeat('completed', 0, ['completed', 0])],
  ['terminal', 'a delta after the end', (stream) => stream.repeat(DELTA, 0, ['completed', 0])],
  ['error-event', 'a failure without an error', (stream) => stream.drop('error'), FAILED],
  [
    'error-event',
    'an error that goes on',
    (stream) => stream.move('error', 0, ['output_item.added', 0]),
    FAILED,
  ],
  [
    'error-event',
    'an error without a code',
    (stream) => Object.assign(stream.data('error'), { error: { message: 'a', type: 'server_error' } }),
    FAILED,
  ],
  ['event-members', 'a delta without logprobs', (stream) => delete stream.data(DELTA).logprobs],
  [
    'event-members',
    'done arguments without a name',
    (stream) => delete stream.data('function_call_arguments.done').name,
  ],
  ['event-members', 'an error without param', (stream) => delete stream.data('error').param, FAILED],
  [
    'event-members',
    'an event of another surface',
    (stream) => stream.repeat(DELTA, 0, [DELTA, 0], { type: 'response.audio.delta' }),
  ],
  [
    'event-members',
    'a place that is no index',
    (stream) => stream.repeat(DELTA, 0, [DELTA, 0], { content_index: -1 }),
  ],
  [
    'response-members',
    'a member left out',
    (stream) => delete (stream.data('created').response as typeof stream.last).max_tool_calls,
  ],
  ['response-members', 'no temperature', (stream) => Object.assign(stream.last, { temperature: null })],
  ['response-members', 'another response', (stream) => Object.assign(stream.last, { id: 'resp_2' })],
  [
    'response-members',
    'usage that does not add up',
    (stream) => Object.assign(stream.last.usage ?? {}, { total_tokens: 7 }),
  ],
  ['response-end', 'no usage', (stream) => Object.assign(stream.last, { usage: null })],
  ['response-end', 'an end in progress', (stream) => Object.assign(stream.last, { status: 'in_progress' })],
  [
    'response-end',
    'an error in a completed one',
    (stream) => Object.assign(stream.last, { error: { code: 'a', message: 'b' } }),
  ],
  [
    'response-end',
    'a failed one without error',
    (stream) => Object.assign(stream.last, { error: null }),
    FAILED,
  ],
  [
    'response-end',
    'an incomplete one without reason',
    (stream) => Object.assign(stream.last, { incomplete_details: null }),
    INCOMPLETE,
  ],
  [
    'response-end',
    'a completed one without its time',
    (stream) => Object.assign(stream.last, { completed_at: null }),
  ],
  [
    'snapshot',
    'an item that changed',
    (stream) => Object.assign((stream.last.output as object[])[2] ?? {}, { name: 'x' }),
  ],
  [
    'snapshot',
    'an item too few',
    (stream) =>
      (stream.last.output as unknown[]).pop() && Object.assign(stream.last, { output_text: 'Hello world' }),
  ],
  ['snapshot', 'an item too many', (stream) => (stream.last.output as unknown[]).push({ type: 'x' })],
  [
    'snapshot',
    'items in another order',
    (stream) =>
      (stream.last.output as unknown[]).splice(
        2,
        2,
        ...(stream.last.output as unknown[]).slice(2, 4).reverse(),
      ),
  ],
  ['snapshot', 'another output_text', (stream) => Object.assign(stream.last, { output_text: 'Bye' })],
]

/** Faults of items. */
export const ITEM_CASES: Case[] = [
  [
    'output-index',
    'an item at another place',
    (stream) => stream.ofItem(5, (data) => Object.assign(data, { output_index: 7 })),
  ],
  [
    'output-index',
    'an event of another item',
    (stream) => stream.repeat(DELTA, 0, [DELTA, 0], { delta: '', item_id: 'msg_x' }),
  ],
  ['item-members', 'an item without status', (stream) => stream.final(5, (item) => delete item.status)],
  ['item-members', 'a call without call_id', (stream) => stream.item(3, (item) => delete item.call_id)],
  [
    'item-members',
    'a call_id that is the id',
    (stream) => stream.item(3, (item) => Object.assign(item, { call_id: item.id })),
  ],
  [
    'item-members',
    'an item that is done in progress',
    (stream) => stream.final(0, (item) => Object.assign(item, { status: 'in_progress' })),
  ],
  [
    'item-members',
    'a message of the user',
    (stream) => stream.item(5, (item) => Object.assign(item, { role: 'user' })),
  ],
  [
    'item-members',
    'text without annotations',
    (stream) => {
      delete (stream.data('content_part.done', 2).part as Record<string, unknown>).annotations
      stream.final(5, (item) => delete part(item).annotations)
    },
  ],
  [
    'item-identity',
    'an id that changes',
    (stream) => stream.final(2, (item) => Object.assign(item, { id: 'fc_x' })),
  ],
  [
    'item-identity',
    'a call_id that changes',
    (stream) => stream.final(2, (item) => Object.assign(item, { call_id: 'x' })),
  ],
  [
    'item-identity',
    'two items of one id',
    (stream) => {
      const { id } = stream.data('output_item.done', 1).item as { id: string }
      stream.ofItem(5, (data) => 'item_id' in data && Object.assign(data, { item_id: id }))
      stream.item(5, (item) => Object.assign(item, { id }))
    },
  ],
  [
    'item-identity',
    'two calls of one call_id',
    (stream) => stream.item(3, (item) => Object.assign(item, { call_id: 'call_0' })),
  ],
  [
    'item-identity',
    'a call that is done under another name',
    (stream) => Object.assign(stream.data('function_call_arguments.done'), { name: 'x' }),
  ],
  [
    'item-identity',
    'an event for an item of another type',
    (stream) => {
      const after: [string, number] = ['function_call_arguments.delta', 0]
      stream.repeat(...after, after, { type: 'response.custom_tool_call_input.delta', delta: '' })
    },
  ],
  [
    'item-order',
    'an item that is done twice',
    (stream) => stream.repeat('output_item.done', 0, ['output_item.done', 0]),
  ],
  ['item-order', 'an item that is never done', (stream) => stream.drop('output_item.done', 5)],
  [
    'item-order',
    'a delta after its item',
    (stream) => stream.repeat(DELTA, 0, ['output_item.done', 1], { delta: '' }),
  ],
  ['item-order', 'a delta of no item', (stream) => stream.repeat(DELTA, 0, [DELTA, 0], { output_index: 9 })],
]

/** Faults inside items. */
export const PART_CASES: Case[] = [
  [
    'part-index',
    'a part at another place',
    (stream) =>
      stream.ofItem(1, (data) => data.content_index === 1 && Object.assign(data, { content_index: 4 })),
  ],
  ['part-order', 'a part that is not done', (stream) => stream.drop('content_part.done', 1)],
  ['part-order', 'a part without its whole text', (stream) => stream.drop('output_text.done', 0)],
  [
    'part-order',
    'a delta after the whole text',
    (stream) => stream.repeat(DELTA, 0, ['output_text.done', 0], { delta: '' }),
  ],
  ['part-order', 'a delta of no part', (stream) => stream.repeat(DELTA, 0, [DELTA, 0], { content_index: 9 })],
  [
    'part-order',
    'a delta of text in a refusal',
    (stream) => stream.repeat(DELTA, 0, ['refusal.delta', 0], { delta: '', content_index: 1 }),
  ],
  [
    'part-order',
    'a part in a part',
    (stream) => stream.move('content_part.done', 0, ['content_part.added', 1]),
  ],
  [
    'part-order',
    'a call without its whole arguments',
    (stream) => stream.drop('function_call_arguments.done', 0),
  ],
  [
    'part-order',
    'whole arguments twice',
    (stream) => stream.repeat('function_call_arguments.done', 0, ['function_call_arguments.done', 0]),
  ],
  [
    'added-empty',
    'a call that begins with arguments',
    (stream) => Object.assign(stream.data('output_item.added', 2).item ?? {}, { arguments: '{' }),
  ],
  [
    'added-empty',
    'an item that begins as done',
    (stream) => Object.assign(stream.data('output_item.added', 1).item ?? {}, { status: 'completed' }),
  ],
  [
    'added-empty',
    'a part that begins with text',
    (stream) => Object.assign(stream.data('content_part.added').part ?? {}, { text: 'a' }),
  ],
  ['text', 'a delta left out', (stream) => stream.drop(DELTA, 1)],
  ['text', 'another whole text', (stream) => Object.assign(stream.data('output_text.done'), { text: 'x' })],
  [
    'text',
    'another text in the part',
    (stream) => Object.assign(stream.data('content_part.done').part ?? {}, { text: 'x' }),
  ],
  ['text', 'another refusal', (stream) => Object.assign(stream.data('refusal.done'), { refusal: 'x' })],
  [
    'text',
    'another summary',
    (stream) => Object.assign(stream.data('reasoning_summary_text.done'), { text: 'x' }),
  ],
  [
    'text',
    'other arguments',
    (stream) => Object.assign(stream.data('function_call_arguments.done'), { arguments: '{}' }),
  ],
  [
    'text',
    'another input',
    (stream) => Object.assign(stream.data('custom_tool_call_input.done'), { input: 'y' }),
  ],
  [
    'text',
    'other arguments in the item',
    (stream) => stream.final(2, (item) => Object.assign(item, { arguments: '{}' })),
  ],
  [
    'text',
    'another part in the item',
    (stream) => stream.final(0, (item) => Object.assign(part(item, 0, 'summary'), { text: 'x' })),
  ],
  [
    'annotations',
    'an annotation at another place',
    (stream) => Object.assign(stream.data('output_text.annotation.added', 1), { annotation_index: 0 }),
  ],
  [
    'annotations',
    'an annotation that was not told',
    (stream) => stream.drop('output_text.annotation.added', 1),
  ],
  [
    'annotations',
    'an annotation that is not kept',
    (stream) => {
      part({ content: [stream.data('content_part.done').part] }).annotations = []
      stream.final(1, (item) => Object.assign(part(item), { annotations: [] }))
    },
  ],
]
