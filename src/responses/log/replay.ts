import type { OutputItem, ResponseObject } from '../../wire/responses.ts'
import type { EventWriter } from '../emitter/event-writer.ts'
import { OpenItem } from '../emitter/open-item.ts'

type StoredEvent = Record<string, unknown> & { type: string }

/** What the events said. */
export interface ToldResponse {
  /** As its first event says it. */
  response: ResponseObject
  inProgress: boolean
  /** By their place in the output. */
  items: OpenItem[]
  /** What the call that was under way said, in bytes. */
  callBytes: number
}

/**
 * Reads what a response has told, for a next life of its object.
 * @param payloads of all stored events in order, at least the first one. @param writer of what is told from now on.
 * @param callAfter number of the last event before the call whose bytes are counted.
 * @throws SyntaxError for a payload that is not JSON.
 */
export function replayResponse(
  payloads: Iterable<string>,
  writer: EventWriter,
  callAfter = Number.POSITIVE_INFINITY,
): ToldResponse {
  let told: ToldResponse | null = null
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

function retell(told: ToldResponse, event: StoredEvent, writer: EventWriter): void {
  const at = event.output_index as number | undefined
  if (event.type === 'response.in_progress') told.inProgress = true
  else if (event.type === 'response.output_item.added') {
    told.items.push(new OpenItem(writer, told.items.length, event.item as OutputItem))
  } else if (at !== undefined) told.items[at]?.retold(event)
}
