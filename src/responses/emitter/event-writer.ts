import type { ResponseObject } from '../../wire/responses.ts'
import type { EmittedEvent } from '../model/events.ts'

/** Numbers the events of one response and writes them as JSON. */
export class EventWriter {
  #sequence: number
  readonly #emit: (event: EmittedEvent) => void
  #closed = false
  /** Numbers of the events of each item, without deltas. */
  readonly itemNumbers: number[][] = []

  /** @param lastSequence the number of the last event that exists, 0 when there is none. */
  constructor(lastSequence: number, emit: (event: EmittedEvent) => void) {
    this.#sequence = lastSequence
    this.#emit = emit
  }

  get lastSequence(): number {
    return this.#sequence
  }

  /** @param members of the event besides its type and number; not empty. */
  write(type: string, members: object): void {
    if ('output_index' in members) this.noteNumber(members.output_index as number, this.#sequence + 1)
    this.writeJson(type, JSON.stringify(members).slice(1), true)
  }

  /** Notes the number of an event of an item that is no delta. */
  noteNumber(outputIndex: number, sequence: number): void {
    if (this.#closed) return
    this.itemNumbers[outputIndex] ??= []
    this.itemNumbers[outputIndex].push(sequence)
  }

  /** @param rest the members as JSON, without the opening brace. */
  writeJson(type: string, rest: string, boundary: boolean): void {
    if (this.#closed) return
    const sequence = ++this.#sequence
    const payload = `{"type":"${type}","sequence_number":${sequence},${rest}`
    this.#emit({ sequence, type, payload, boundary })
  }

  /** The first two events of a stream. */
  writeBeginning(response: ResponseObject): void {
    this.write('response.created', { response })
    this.write('response.in_progress', { response })
  }

  /**
   * The last events of a stream: `response.completed`, or `error` and `response.failed` (interface: Events). Nothing is
   * written afterwards. The code of `error` is the same for all failures (interface: Errors).
   * @param response that has ended.
   */
  writeEnd(response: ResponseObject): void {
    const { error } = response
    if (error) {
      const { message } = error
      this.write('error', { error: { message, type: 'server_error', code: 'stream_error' }, param: null })
    }
    this.write(error ? 'response.failed' : 'response.completed', { response })
    this.#closed = true
  }
}

/** Number of the events that `EventWriter.writeEnd` writes. */
export const endEventCount = ({ error }: ResponseObject): number => (error ? 2 : 1)

/** The deltas of one text. Everything but the delta itself is serialized once, since a text may have thousands of them. */
export class DeltaWriter {
  readonly #writer: EventWriter
  readonly #type: string
  readonly #head: string
  readonly #tail: string
  #begun = false

  /** @param place members with the place of the text. @param more members that every delta repeats. */
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
