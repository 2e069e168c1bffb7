import type { ResponseObject } from '../../wire/responses.ts'
import { type EmittedEvent, EventWriter, eventFrame } from '../emitter/event-writer.ts'
import { writeStoredItem } from '../emitter/open-item.ts'
import { terminalEvents } from '../engine/recovery.ts'

/**
 * The stream of a response whose events are gone: its final items, then its end (interface: Events, Resume). The items
 * open and close as they did live, without deltas, so that the accumulators of official clients build the same response.
 */

/**
 * @param response that has ended. @param after the events are numbered above it: for whoever resumes they come next.
 * @returns SSE frames, one to a chunk, made as they are read.
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

/** The condensed events of a response that has ended. @param after the number before the first. */
export function* storedEvents(response: ResponseObject, after: number): Generator<EmittedEvent, void> {
  const written: EmittedEvent[] = []
  const writer = new EventWriter(after, (event) => written.push(event))
  const begun = begunForm(response)
  writer.write('response.created', { response: begun })
  writer.write('response.in_progress', { response: begun })
  let last = after + written.length
  yield* written.splice(0)
  for (const [index, item] of response.output.entries()) {
    writeStoredItem(writer, item, index)
    last += written.length
    yield* written.splice(0)
  }
  yield* terminalEvents(response, last)
}

/** As it was before anything was generated. */
const begunForm = (response: ResponseObject): ResponseObject => ({
  ...response,
  status: 'in_progress',
  completed_at: null,
  error: null,
  incomplete_details: null,
  output: [],
  output_text: '',
  usage: null,
})
