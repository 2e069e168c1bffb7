/** One event of a response's stream, as it is stored and sent. */
export interface EmittedEvent {
  sequence: number
  type: string
  /** JSON with type and sequence_number in it. */
  payload: string
  /** Flush at once: everything but deltas, and the first delta of a part. */
  boundary: boolean
}

const encoder = new TextEncoder()

/**
 * An event as an SSE frame. Its number is the `id`, which browsers send back when they connect again.
 * @throws TypeError for a line break, which would end the frame early.
 */
export function eventFrame({ type, sequence, payload }: Omit<EmittedEvent, 'boundary'>): Uint8Array {
  if (/[\r\n]/.test(type) || /[\r\n]/.test(payload)) throw new TypeError(`event ${sequence} has a line break`)
  return encoder.encode(`event: ${type}\nid: ${sequence}\ndata: ${payload}\n\n`)
}

/**
 * What the `error` event of a stream has besides its number: its code is the same for all (interface: Errors), and
 * `response.error.code` in the event after it tells more.
 */
export const streamError = (message: string) => ({
  error: { message, type: 'server_error', code: 'stream_error' },
  param: null,
})

/** Numbers the events of one response and writes them as JSON. */
export class EventWriter {
  #sequence: number
  readonly #emit: (event: EmittedEvent) => void
  #closed = false

  /** @param lastSequence the number of the last event that exists, 0 when there is none. */
  constructor(lastSequence: number, emit: (event: EmittedEvent) => void) {
    this.#sequence = lastSequence
    this.#emit = emit
  }

  /** The number of the last event that exists. */
  get lastSequence(): number {
    return this.#sequence
  }

  /** @param members what the event has besides its type and number; not empty. */
  write(type: string, members: object): void {
    this.writeJson(type, JSON.stringify(members).slice(1), true)
  }

  /** @param rest the members as JSON, without the brace that opens them. */
  writeJson(type: string, rest: string, boundary: boolean): void {
    if (this.#closed) return
    const sequence = ++this.#sequence
    const payload = `{"type":"${type}","sequence_number":${sequence},${rest}`
    this.#emit({ sequence, type, payload, boundary })
  }

  /** Nothing is written from here on. */
  close(): void {
    this.#closed = true
  }
}

/** The deltas of one text. All but the delta itself is serialized once: there may be thousands of them. */
export class DeltaWriter {
  readonly #writer: EventWriter
  readonly #type: string
  readonly #head: string
  readonly #tail: string
  #begun = false

  /** @param place the members that say where the text is. @param more members that every delta repeats. */
  constructor(writer: EventWriter, type: string, place: object, more: object = {}) {
    this.#writer = writer
    this.#type = type
    this.#head = `${JSON.stringify(place).slice(1, -1)},"delta":`
    const tail = JSON.stringify(more)
    this.#tail = tail === '{}' ? '}' : `,${tail.slice(1)}`
  }

  write(delta: string): void {
    this.#writer.writeJson(this.#type, `${this.#head}${JSON.stringify(delta)}${this.#tail}`, !this.#begun)
    this.#begun = true
  }
}
