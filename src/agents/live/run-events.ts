import { EventWriter } from '../../responses/emitter/event-writer.ts'
import type { EmittedEvent } from '../../responses/model/events.ts'
import { BEGINNING_EVENTS, eventFrame } from '../../responses/model/events.ts'
import { renderedFrames, type StreamEvent } from '../../responses/model/rendered-frames.ts'
import type { ResponseObject } from '../../wire/responses.ts'

/**
 * The events of one reader's stream of a run: the beginning, the events of the items of each attempt, and the end. Numbers
 * and output indexes follow from those of the attempts' own streams. Every reader therefore gets the same numbers, also when
 * the deltas of an attempt are gone.
 */
export class RunEvents {
  /** Number of the last event. */
  #last = 0
  /** Number of items. */
  #items = 0

  /** @returns SSE frames. @param response before its first step. */
  beginning(response: ResponseObject): Uint8Array {
    return this.#written((writer) => writer.writeBeginning(response))
  }

  /** @returns SSE frames. @param response that has ended. */
  end(response: ResponseObject): Uint8Array {
    return this.#written((writer) => writer.writeEnd(response))
  }

  /** The frames of one attempt, to be read to their end before the next ones. Comments are passed on. */
  ofAttempt(frames: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const before = { last: this.#last - BEGINNING_EVENTS, items: this.#items }
    return renderedFrames(frames, (event) => this.#numbered(event, before))
  }

  /** Null for events that are not of an item: the run has its own. */
  #numbered({ type, payload }: StreamEvent, before: { last: number; items: number }): StreamEvent | null {
    const event = JSON.parse(payload) as { sequence_number: number; output_index?: unknown }
    if (typeof event.output_index !== 'number') return null
    const sequence = before.last + event.sequence_number
    const index = before.items + event.output_index
    this.#last = Math.max(this.#last, sequence)
    this.#items = Math.max(this.#items, index + 1)
    const numbered = { ...event, sequence_number: sequence, output_index: index }
    return { type, id: String(sequence), payload: JSON.stringify(numbered) }
  }

  #written(write: (writer: EventWriter) => void): Uint8Array {
    const events: EmittedEvent[] = []
    write(new EventWriter(this.#last, (event) => events.push(event)))
    this.#last += events.length
    return Buffer.concat(events.map(eventFrame))
  }
}
