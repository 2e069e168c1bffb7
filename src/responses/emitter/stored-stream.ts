import type { ResponseObject } from '../../wire/responses.ts'
import { type EmittedEvent, EventWriter, eventFrame } from './event-writer.ts'
import { writeStoredItem } from './open-item.ts'

/**
 * The stream of a response whose events are erased: its final items, then its end (interface: Events, Resume). Items open
 * and close as they did live, without deltas, so that the accumulators of official clients build the same response.
 * @param response that has ended. @param after the number before the first event; a client that resumes has it.
 * @returns SSE frames, one in each chunk, made as they are read.
 */
export function storedStream(response: ResponseObject, after: number): ReadableStream<Uint8Array> {
  const events = storedEvents(response, after)
  return new ReadableStream(
    {
      pull(controller) {
        const { done, value } = events.next()
        if (done) controller.close()
        else controller.enqueue(eventFrame(value))
      },
    },
    { highWaterMark: 0 },
  )
}

function* storedEvents(response: ResponseObject, after: number): Generator<EmittedEvent, void> {
  const written: EmittedEvent[] = []
  const writer = new EventWriter(after, (event) => written.push(event))
  writer.writeBeginning({ ...response, ...BEGINNING })
  yield* written.splice(0)
  for (const [index, item] of response.output.entries()) {
    writeStoredItem(writer, item, index)
    yield* written.splice(0)
  }
  writer.writeEnd(response)
  yield* written
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
