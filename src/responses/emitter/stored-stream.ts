import type { ResponseObject } from '../../wire/responses.ts'
import { eventFrame, type StoredNumbers } from '../model/events.ts'
import { EventWriter } from './event-writer.ts'
import { writeStoredItem } from './open-item.ts'

/**
 * The stream of a response whose events are erased, or were redacted under policies that have changed: its live events
 * without the deltas, each with its own number (interface: Events, Resume). A client that resumes gets only what follows.
 * The done events have the text of what was open.
 * @param response that has ended. @param after number of the last event that the client has; the last event is sent again
 *   to a client that has all.
 * @returns SSE frames, one in each chunk, made as they are read.
 */
export function storedStream(
  response: ResponseObject,
  numbers: StoredNumbers,
  after: number,
): ReadableStream<Uint8Array> {
  const all = storedEvents(response, numbers)
  const following = all.filter(({ sequence }) => sequence > after)
  const events = (following.length > 0 ? following : all.slice(-1)).values()
  return new ReadableStream(
    {
      pull(controller) {
        const { done, value } = events.next()
        if (done) return controller.close()
        const { type, sequence, members } = value
        const payload = JSON.stringify({ type, sequence_number: sequence, ...members })
        controller.enqueue(eventFrame({ type, sequence, payload }))
      },
    },
    { highWaterMark: 0 },
  )
}

/** An event that refers to the response, and is serialized when it is sent. */
interface UnwrittenEvent {
  type: string
  members: object
}

type StoredEvent = UnwrittenEvent & { sequence: number }

/** Collects events instead of writing them. */
class EventCollector extends EventWriter {
  #events: UnwrittenEvent[] = []

  constructor() {
    super(0, () => {})
  }

  override write(type: string, members: object): void {
    this.#events.push({ type, members })
  }

  take(): UnwrittenEvent[] {
    return this.#events.splice(0)
  }
}

/** Events in the order of their numbers: an item may end after the next one has begun. */
function storedEvents(response: ResponseObject, { items, last }: StoredNumbers): StoredEvent[] {
  const collector = new EventCollector()
  collector.writeBeginning({ ...response, ...BEGINNING })
  const events = collector.take().map((event, index) => ({ ...event, sequence: index + 1 }))
  for (const [index, item] of response.output.entries()) {
    writeStoredItem(collector, item, index)
    events.push(...numbered(collector.take(), items[index] ?? []))
  }
  events.sort((left, right) => left.sequence - right.sequence)
  collector.writeEnd(response)
  const end = collector.take()
  return [...events, ...end.map((event, index) => ({ ...event, sequence: last - end.length + 1 + index }))]
}

/** Parts that current policies have removed leave an item with its first and its last event. */
function numbered(events: readonly UnwrittenEvent[], numbers: readonly number[]): StoredEvent[] {
  const kept = events.length === numbers.length ? events : [events.at(0), events.at(-1)]
  const given = events.length === numbers.length ? numbers : [numbers.at(0), numbers.at(-1)]
  return kept.flatMap((event, index) => {
    const sequence = given[index]
    return event && sequence !== undefined ? [{ ...event, sequence }] : []
  })
}

/** Members of a response before anything was generated. */
const BEGINNING = {
  status: 'in_progress',
  completed_at: null,
  error: null,
  incomplete_details: null,
  output: [],
  output_text: '',
  usage: null,
} satisfies Partial<ResponseObject>
