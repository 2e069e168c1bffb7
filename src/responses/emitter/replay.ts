import type { OutputItem, ResponseObject } from '../../wire/responses.ts'
import type { EventWriter } from './event-writer.ts'
import { OpenItem } from './open-item.ts'

type StoredEvent = Record<string, unknown> & { type: string }

/** A response as its stored events describe it. */
interface ReplayedResponse {
  /** The response of the first event. */
  response: ResponseObject
  inProgress: boolean
  /** Items in the order of the output. */
  items: OpenItem[]
  /** Bytes of the deltas of the model call that was open. */
  callBytes: number
}

/**
 * Rebuilds a response from its stored events, after a restart of its object.
 * @param payloads of all stored events in order. @param writer for the events that follow.
 * @param callAfter number of the last event before the call whose bytes are counted.
 * @throws Error for a log without its first event, SyntaxError for a payload that is not JSON.
 */
export function replayResponse(
  payloads: Iterable<string>,
  writer: EventWriter,
  callAfter = Number.POSITIVE_INFINITY,
): ReplayedResponse {
  let response: ResponseObject | null = null
  let inProgress = false
  let callBytes = 0
  const items: OpenItem[] = []
  for (const payload of payloads) {
    const event = JSON.parse(payload) as StoredEvent
    const at = event.output_index as number | undefined
    if (at !== undefined && event.delta === undefined) writer.noteNumber(at, event.sequence_number as number)
    if (event.type === 'response.created') response = event.response as ResponseObject
    else if (event.type === 'response.in_progress') inProgress = true
    else if (event.type === 'response.output_item.added') {
      items.push(new OpenItem(writer, items.length, event.item as OutputItem))
    } else if (at !== undefined) items[at]?.replay(event)
    if (typeof event.delta === 'string' && (event.sequence_number as number) > callAfter) {
      callBytes += Buffer.byteLength(event.delta)
    }
  }
  if (!response) throw new Error('a response without its first event')
  return { response, inProgress, items, callBytes }
}
