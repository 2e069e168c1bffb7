import { interruptedUsage } from '../gateway/opened-call.ts'
import { addUsage } from '../governance/credits.ts'
import type { OutputItem, ResponseObject } from '../wire/responses.ts'
import { type EmittedEvent, EventWriter, streamError } from './event-writer.ts'
import type { ResponseHead } from './object-state.ts'
import { outputTextOf, responseUsage } from './response-object.ts'

/** What is left to tell of a response whose producer died, and what it has become. */
export interface Recovered {
  response: ResponseObject
  /** Closes what was open, then ends the response. */
  events: EmittedEvent[]
  /** The call that was under way, and what it is charged for; null when there was none. */
  call: ResponseHead['interruptedCall']
}

/** What is known of the calls of a response. */
export type KnownCalls = Pick<ResponseHead, 'usage' | 'openCall'>

type StoredEvent = Record<string, unknown> & { type: string }

/** Items by their place in the output, and the parts of each that are not closed, by their place in the item. */
interface Told {
  response: ResponseObject
  inProgress: boolean
  items: OutputItem[]
  openItems: Set<number>
  openParts: Map<number, Map<number, { closing: (writer: EventWriter) => void }>>
  /** Parts whose text is whole already, as `<list>/<place in the output>/<place in the item>`. */
  wholeTexts: Set<string>
  /** Calls whose arguments are not whole. */
  openCalls: Set<number>
  /** What the call that was under way said, in bytes. */
  callBytes: number
}

const INTERRUPTED = {
  code: 'server_error',
  message: 'The response was interrupted. What was generated up to here is kept.',
}

/**
 * Ends a response that was interrupted, from its stored events: what readers were told stays true, every item and part
 * that is open is closed as incomplete, then `error` and `response.failed` follow (design: Responses). Its usage
 * is what the calls that were settled are charged for, and an estimate of the one that was not.
 * @param payloads of all stored events in order, at least the first one. @param lastSequence of the last of them.
 * @throws SyntaxError for a payload that is not JSON.
 */
export function interruptedResponse(
  payloads: Iterable<string>,
  lastSequence: number,
  { usage, openCall }: KnownCalls,
): Recovered {
  const told = replay(payloads, openCall?.after ?? lastSequence)
  const call = openCall && {
    opened: openCall.opened,
    usage: interruptedUsage(openCall.opened, told.callBytes),
  }
  const events: EmittedEvent[] = []
  const writer = new EventWriter(lastSequence, (event) => events.push(event))
  if (!told.inProgress) writer.write('response.in_progress', { response: told.response })
  closeItems(told, writer)
  const response: ResponseObject = {
    ...told.response,
    status: 'failed',
    error: INTERRUPTED,
    output: told.items,
    output_text: outputTextOf(told.items),
    usage: responseUsage(call ? addUsage(usage, call.usage) : usage),
  }
  return { response, events: [...events, ...terminalEvents(response, lastSequence + events.length)], call }
}

/** How many events `terminalEvents` are. */
export const terminalCount = ({ status }: ResponseObject): number => (status === 'failed' ? 2 : 1)

/** The events that end a response that has ended: one, or `error` before it for a failed one (interface: Events). */
export function terminalEvents(response: ResponseObject, lastSequence: number): EmittedEvent[] {
  const events: EmittedEvent[] = []
  const writer = new EventWriter(lastSequence, (event) => events.push(event))
  if (response.status === 'failed') {
    writer.write('error', streamError((response.error ?? INTERRUPTED).message))
  }
  writer.write(response.status === 'failed' ? 'response.failed' : 'response.completed', { response })
  return events
}

function replay(payloads: Iterable<string>, callAfter: number): Told {
  let told: Told | null = null
  for (const payload of payloads) {
    const event = JSON.parse(payload) as StoredEvent
    if (event.type === 'response.created') told = begun(event.response as ResponseObject)
    if (!told) continue
    HANDLERS[event.type]?.(told, event)
    if (typeof event.delta === 'string' && (event.sequence_number as number) > callAfter) {
      told.callBytes += Buffer.byteLength(event.delta)
    }
  }
  if (!told) throw new Error('a response without its first event')
  return told
}

const begun = (response: ResponseObject): Told => ({
  response,
  inProgress: false,
  items: [],
  openItems: new Set(),
  openParts: new Map(),
  wholeTexts: new Set(),
  openCalls: new Set(),
  callBytes: 0,
})

type Handler = (told: Told, event: StoredEvent) => void

const indexOf = (event: StoredEvent): number => event.output_index as number
const textOf = (event: StoredEvent): string => event.delta as string

/** A part in the making: the member of it that deltas add to. */
const grows =
  (list: 'content' | 'summary', index: 'content_index' | 'summary_index', member: string): Handler =>
  (told, event) => {
    const item = told.items[indexOf(event)] as unknown as Record<string, Array<Record<string, string>>>
    const part = item[list]?.[event[index] as number]
    if (part) part[member] = (part[member] ?? '') + textOf(event)
  }

const adds =
  (list: 'content' | 'summary', index: 'content_index' | 'summary_index'): Handler =>
  (told, event) => {
    const at = indexOf(event)
    const item = told.items[at] as unknown as Record<string, unknown[]>
    const place = event[index] as number
    item[list] = [...(item[list] ?? []), event.part]
    const parts = told.openParts.get(at) ?? new Map()
    told.openParts.set(at, parts)
    parts.set(place, { closing: (writer: EventWriter) => closePart(writer, told, at, list, place) })
  }

const closes =
  (index: 'content_index' | 'summary_index'): Handler =>
  (told, event) => {
    told.openParts.get(indexOf(event))?.delete(event[index] as number)
  }

const isWhole =
  (list: 'content' | 'summary', index: 'content_index' | 'summary_index'): Handler =>
  (told, event) => {
    told.wholeTexts.add(`${list}/${indexOf(event)}/${event[index]}`)
  }

/** Of a call: its arguments or input. */
const growsItem =
  (member: string): Handler =>
  (told, event) => {
    const item = told.items[indexOf(event)] as unknown as Record<string, string>
    item[member] = (item[member] ?? '') + textOf(event)
  }

const HANDLERS: Record<string, Handler> = {
  'response.in_progress': (told) => {
    told.inProgress = true
  },
  'response.output_item.added': (told, event) => {
    const item = event.item as OutputItem
    told.items[indexOf(event)] = item
    told.openItems.add(indexOf(event))
    if (CALLS[item.type]) told.openCalls.add(indexOf(event))
  },
  'response.output_item.done': (told, event) => {
    told.items[indexOf(event)] = event.item as OutputItem
    told.openItems.delete(indexOf(event))
  },
  'response.content_part.added': adds('content', 'content_index'),
  'response.content_part.done': closes('content_index'),
  'response.output_text.delta': grows('content', 'content_index', 'text'),
  'response.output_text.done': isWhole('content', 'content_index'),
  'response.refusal.done': isWhole('content', 'content_index'),
  'response.reasoning_summary_text.done': isWhole('summary', 'summary_index'),
  'response.refusal.delta': grows('content', 'content_index', 'refusal'),
  'response.output_text.annotation.added': (told, event) => {
    const item = told.items[indexOf(event)] as unknown as { content: Array<{ annotations: unknown[] }> }
    item.content[event.content_index as number]?.annotations.push(event.annotation)
  },
  'response.reasoning_summary_part.added': adds('summary', 'summary_index'),
  'response.reasoning_summary_part.done': closes('summary_index'),
  'response.reasoning_summary_text.delta': grows('summary', 'summary_index', 'text'),
  'response.function_call_arguments.delta': growsItem('arguments'),
  'response.function_call_arguments.done': (told, event) => told.openCalls.delete(indexOf(event)),
  'response.custom_tool_call_input.delta': growsItem('input'),
  'response.custom_tool_call_input.done': (told, event) => told.openCalls.delete(indexOf(event)),
}

/** How what a call is given ends. */
const CALLS: Record<string, (item: Record<string, unknown>) => [type: string, members: object]> = {
  function_call: ({ name, arguments: json }) => [
    'response.function_call_arguments.done',
    { name, arguments: json },
  ],
  custom_tool_call: ({ input }) => ['response.custom_tool_call_input.done', { input }],
}

function closeItems(told: Told, writer: EventWriter): void {
  for (const at of told.openItems) {
    for (const { closing } of told.openParts.get(at)?.values() ?? []) closing(writer)
    const item = { ...(told.items[at] as OutputItem), status: 'incomplete' as const }
    const ending = told.openCalls.has(at) ? CALLS[item.type]?.(item as never) : undefined
    if (ending) writer.write(ending[0], { item_id: item.id, output_index: at, ...ending[1] })
    told.items[at] = item
    writer.write('response.output_item.done', { output_index: at, item })
  }
}

function closePart(
  writer: EventWriter,
  told: Told,
  at: number,
  list: 'content' | 'summary',
  index: number,
): void {
  const item = told.items[at] as unknown as { id: string } & Record<string, Array<Record<string, unknown>>>
  const part = item[list]?.[index] ?? {}
  const place =
    list === 'content'
      ? { item_id: item.id, output_index: at, content_index: index }
      : { item_id: item.id, output_index: at, summary_index: index }
  const text = textEnd(list, part)
  if (!told.wholeTexts.has(`${list}/${at}/${index}`)) writer.write(text.type, { ...place, ...text.members })
  writer.write(`response.${list === 'summary' ? 'reasoning_summary' : list}_part.done`, { ...place, part })
}

function textEnd(
  list: 'content' | 'summary',
  part: Record<string, unknown>,
): { type: string; members: object } {
  if (list === 'summary') {
    return { type: 'response.reasoning_summary_text.done', members: { text: part.text } }
  }
  if (part.type === 'refusal') {
    return { type: 'response.refusal.done', members: { refusal: part.refusal } }
  }
  return { type: 'response.output_text.done', members: { text: part.text, logprobs: [] } }
}
