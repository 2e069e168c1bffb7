import { interruptedUsage } from '../gateway/opened-call.ts'
import { addUsage } from '../governance/credits.ts'
import type { OutputItem, ResponseObject } from '../wire/responses.ts'
import { type EmittedEvent, EventWriter, streamError } from './event-writer.ts'
import type { ResponseHead } from './object-state.ts'
import { OpenItem } from './open-item.ts'
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

/** What the events said. */
interface Told {
  response: ResponseObject
  inProgress: boolean
  /** By their place in the output. */
  items: OpenItem[]
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
  const events: EmittedEvent[] = []
  const writer = new EventWriter(lastSequence, (event) => events.push(event))
  const told = replay(payloads, openCall?.after ?? lastSequence, writer)
  const call = openCall && {
    opened: openCall.opened,
    usage: interruptedUsage(openCall.opened, told.callBytes),
  }
  if (!told.inProgress) writer.write('response.in_progress', { response: told.response })
  for (const item of told.items) item.close('incomplete')
  const output = told.items.map(({ item }) => item)
  const response: ResponseObject = {
    ...told.response,
    status: 'failed',
    error: INTERRUPTED,
    output,
    output_text: outputTextOf(output),
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

/** @param writer of what is told of the items from now on. */
function replay(payloads: Iterable<string>, callAfter: number, writer: EventWriter): Told {
  let told: Told | null = null
  for (const payload of payloads) {
    const event = JSON.parse(payload) as StoredEvent
    if (event.type === 'response.created') {
      told = { response: event.response as ResponseObject, inProgress: false, items: [], callBytes: 0 }
    }
    if (!told) continue
    retell(told, event, writer)
    if (typeof event.delta === 'string' && (event.sequence_number as number) > callAfter) {
      told.callBytes += Buffer.byteLength(event.delta)
    }
  }
  if (!told) throw new Error('a response without its first event')
  return told
}

function retell(told: Told, event: StoredEvent, writer: EventWriter): void {
  const at = event.output_index as number | undefined
  if (event.type === 'response.in_progress') told.inProgress = true
  else if (event.type === 'response.output_item.added') {
    told.items.push(new OpenItem(writer, told.items.length, event.item as OutputItem))
  } else if (at !== undefined) told.items[at]?.retold(event)
}
