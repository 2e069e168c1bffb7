/** One event of a response's stream, in its stored and sent form. */
export interface EmittedEvent {
  /** Sequence number: one more than that of the event before; the first is 1. */
  sequence: number
  type: string
  /** JSON on one line, type and sequence_number included. */
  payload: string
  /** Whether the event is stored and sent without delay: every event but deltas, and the first delta of a part. */
  boundary: boolean
}

const encoder = new TextEncoder()

/**
 * An event as an SSE frame. Its number is the `id`, which browsers send back when they reconnect.
 * @throws TypeError for a line break, which would end the frame early.
 */
export function eventFrame({ type, sequence, payload }: Omit<EmittedEvent, 'boundary'>): Uint8Array {
  if (/[\r\n]/.test(type) || /[\r\n]/.test(payload)) throw new TypeError(`event ${sequence} has a line break`)
  return encoder.encode(`event: ${type}\nid: ${sequence}\ndata: ${payload}\n\n`)
}

/**
 * The numbers of the events that can be made again from a stored response: all but the deltas. A stream after the window
 * has the same numbers, so that a client that resumes gets only what follows.
 */
export interface StoredNumbers {
  /** Numbers for each item, by its index in the output, in order. */
  items: number[][]
  /** Number of the last event. */
  last: number
}

/** Events of a response before those of its items, see `writeBeginning`. */
export const BEGINNING_EVENTS = 2
