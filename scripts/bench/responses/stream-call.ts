import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { BenchFailure } from '../measure.ts'

/** One request whose answer is a stream of events. */
export interface StreamRequest {
  port: number
  path: string
  headers: Record<string, string>
  /** JSON to POST; a GET without it. */
  body?: string
}

/** The result of a stream. Times are milliseconds since the request was sent. */
export interface StreamResult {
  /** When each of the awaited texts had arrived, in the order of the request. */
  marks: number[]
  firstByte: number
  total: number
  events: number
  bytes: number
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
const FRAME_END = '\n\n'
const LINE_FEED = 0x0a
/** Enough of an event to identify it. */
const BEGINNING_BYTES = 32
const HEAD_BYTES = 2048

/**
 * Makes a request and reads its stream to the end.
 *
 * @param marks texts whose arrival is timed; each is looked for after the one before it
 * @param ending how the last event of a complete stream begins
 * @throws BenchFailure for another status than 200, for a stream that lacks its ending or one of the marks
 */
export async function callStream(
  to: StreamRequest,
  ending: string,
  marks: readonly RegExp[] = [],
): Promise<StreamResult> {
  const begin = performance.now()
  const { answer } = await openStream(to)
  const reader = new StreamReader(begin, marks)
  for await (const bytes of answer) reader.take(bytes as Buffer)
  return reader.result(ending)
}

/** A stream whose answer has begun. Nothing of it is read yet. @throws BenchFailure for another status than 200 */
export function openStream(
  to: StreamRequest,
  through = agent,
): Promise<{ call: ClientRequest; answer: IncomingMessage }> {
  const { port, path, headers, body } = to
  const method = body === undefined ? 'GET' : 'POST'
  const call = request({ host: '127.0.0.1', port, path, method, headers, agent: through })
  return new Promise((resolve, reject) => {
    call.on('error', reject)
    call.on('response', (answer) => {
      if (answer.statusCode === 200) {
        resolve({ call, answer })
        return
      }
      answer.setEncoding('utf8').once('data', (text: string) => {
        reject(
          new BenchFailure(
            `${method} ${path.split('?')[0]}: status ${answer.statusCode}: ${text.slice(0, 300)}`,
          ),
        )
        call.destroy()
      })
    })
    call.end(body)
  })
}

/** Counts and times what comes of a stream, without keeping it. */
export class StreamReader {
  /** The first kilobytes. */
  head = ''

  readonly #begin: number
  readonly #wanted: RegExp[]
  readonly #marks: number[] = []
  #firstByte = 0
  #last = 0
  #events = 0
  #bytes = 0
  #text = ''
  #lastByte = 0
  /** How the event begins that is being read, and how the last one began. */
  #beginning = ''
  #lastBeginning = ''

  /** @param begin when the request was sent, by `performance.now()` */
  constructor(begin: number, marks: readonly RegExp[] = []) {
    this.#begin = begin
    this.#wanted = [...marks]
  }

  /** Of what has come. */
  get events(): number {
    return this.#events
  }

  get bytes(): number {
    return this.#bytes
  }

  take(bytes: Buffer): void {
    this.#last = performance.now() - this.#begin
    if (this.#bytes === 0) this.#firstByte = this.#last
    this.#bytes += bytes.length
    if (this.head.length < HEAD_BYTES) this.head += bytes.toString('latin1')
    if (this.#wanted.length > 0) this.#look(bytes)
    this.#countEvents(bytes)
  }

  /** @throws BenchFailure when the stream is not whole */
  result(ending: string): StreamResult {
    if (this.#beginning !== '' || !this.#lastBeginning.startsWith(ending))
      throw new BenchFailure(`a stream ended without ${ending}`)
    const [missing] = this.#wanted
    if (missing !== undefined) throw new BenchFailure(`a stream had nothing like ${missing}`)
    return {
      marks: this.#marks,
      firstByte: this.#firstByte,
      total: this.#last,
      events: this.#events,
      bytes: this.#bytes,
    }
  }

  #look(bytes: Buffer): void {
    this.#text += bytes.toString('latin1')
    for (let found = this.#wanted[0]?.test(this.#text); found; found = this.#wanted[0]?.test(this.#text)) {
      this.#marks.push(this.#last)
      this.#wanted.shift()
    }
  }

  #countEvents(bytes: Buffer): void {
    let start = 0
    // Its first line feed may have come with what was read before.
    if (bytes[0] === LINE_FEED && this.#lastByte === LINE_FEED) start = this.#endEvent(1)
    for (let at = bytes.indexOf(FRAME_END, start); at >= 0; at = bytes.indexOf(FRAME_END, start)) {
      this.#begun(bytes, start)
      start = this.#endEvent(at + FRAME_END.length)
    }
    this.#begun(bytes, start)
    this.#lastByte = bytes.at(-1) ?? this.#lastByte
  }

  /** Notes how the event begins that these bytes are of. */
  #begun(bytes: Buffer, start: number): void {
    const missing = BEGINNING_BYTES - this.#beginning.length
    if (missing > 0) this.#beginning += bytes.toString('latin1', start, start + missing)
  }

  #endEvent(end: number): number {
    this.#events += 1
    this.#lastBeginning = this.#beginning
    this.#beginning = ''
    return end
  }
}
