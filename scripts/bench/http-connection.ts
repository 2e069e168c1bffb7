import { connect, type Socket } from 'node:net'

/** Status, times and sizes of one answer, without its body. */
export interface WireAnswer {
  status: number
  /** Bytes of the body. */
  bytes: number
  /** Milliseconds from the request to the first byte of the body, and to its last. */
  firstByte: number
  total: number
  /** The end of the body. */
  tail: string
}

/** The last event of a response is the response, and its name is at its beginning. */
const TAIL_BYTES = 32 * 1024

/**
 * A kept-alive HTTP/1.1 connection that sends prepared bytes and reads answers, one at a time. It supports only the
 * HTTP of the bench's three servers, so that the generator costs little compared with them.
 */
export class HttpConnection {
  readonly #socket: Socket
  #waiting: { resolve: (answer: WireAnswer) => void; reject: (error: Error) => void } | undefined
  #reader: AnswerReader | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () =>
      this.#fail(new Error('the connection was closed before the answer was complete')),
    )
  }

  /** @throws when nothing listens on the port of 127.0.0.1 */
  static open(port: number): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new HttpConnection(socket))
      })
    })
  }

  /** Sends one request and reads its answer. @throws when the connection ends or sends what is no answer */
  send(request: Buffer): Promise<WireAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#reader = new AnswerReader()
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(bytes: Buffer): void {
    const reader = this.#reader
    if (reader === undefined) {
      this.#fail(new Error('bytes came that nothing asked for'))
      return
    }
    try {
      if (!reader.take(bytes)) return
    } catch (error) {
      this.#fail(error as Error)
      return
    }
    const waiting = this.#waiting
    this.#waiting = undefined
    this.#reader = undefined
    waiting?.resolve(reader.answer())
  }

  #fail(error: Error): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    this.#socket.destroy()
    waiting?.reject(error)
  }
}

/** Reads one answer: `content-length` or chunked. */
class AnswerReader {
  readonly #sentAt = performance.now()
  #held: Buffer = Buffer.alloc(0)
  #status = 0
  /** Bytes left of the body or of the current chunk; null until the headers are complete. */
  #left: number | null = null
  #chunked = false
  /** The line break after a chunk is still to come. */
  #afterChunk = false
  #bytes = 0
  #firstByte = 0
  #total = 0
  /** The last parts of the body, together at least as long as the tail if it is. */
  #tail: Buffer[] = []
  #tailBytes = 0

  /** Takes what the socket read. @returns whether the answer is complete */
  take(bytes: Buffer): boolean {
    let rest = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    this.#held = Buffer.alloc(0)
    if (this.#left === null) {
      const end = rest.indexOf('\r\n\r\n')
      if (end < 0) return this.#hold(rest)
      this.#readHead(rest.toString('latin1', 0, end))
      rest = rest.subarray(end + 4)
    }
    return this.#chunked ? this.#takeChunks(rest) : this.#takeBody(rest)
  }

  answer(): WireAnswer {
    const tail = Buffer.concat(this.#tail).subarray(-TAIL_BYTES).toString('utf8')
    return { status: this.#status, bytes: this.#bytes, firstByte: this.#firstByte, total: this.#total, tail }
  }

  #hold(rest: Buffer): false {
    this.#held = rest
    return false
  }

  #finish(): true {
    this.#total = performance.now() - this.#sentAt
    return true
  }

  #readHead(head: string): void {
    this.#status = Number(head.slice(9, 12))
    this.#chunked = /\r\ntransfer-encoding: *chunked/i.test(head)
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    if (!this.#chunked && length === undefined) throw new Error('an answer came without a length')
    this.#left = this.#chunked ? 0 : Number(length)
  }

  #takeBody(rest: Buffer): boolean {
    this.#left = (this.#left ?? 0) - rest.length
    this.#keep(rest)
    return this.#left > 0 ? false : this.#finish()
  }

  #takeChunks(bytes: Buffer): boolean {
    let rest = bytes
    while (rest.length > 0) {
      const left = this.#left ?? 0
      if (left > 0) {
        const part = rest.subarray(0, left)
        this.#keep(part)
        this.#left = left - part.length
        this.#afterChunk = this.#left === 0
        rest = rest.subarray(part.length)
        continue
      }
      const start = this.#afterChunk ? 2 : 0
      const end = rest.indexOf('\r\n', start)
      if (end < 0) return this.#hold(rest)
      const size = Number.parseInt(rest.toString('latin1', start, end), 16)
      if (Number.isNaN(size)) throw new Error('a chunk came without a size')
      if (size === 0) return rest.length < end + 4 ? this.#hold(rest) : this.#finish()
      this.#afterChunk = false
      this.#left = size
      rest = rest.subarray(end + 2)
    }
    return false
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return
    if (this.#bytes === 0) this.#firstByte = performance.now() - this.#sentAt
    this.#bytes += part.length
    this.#tail.push(part)
    this.#tailBytes += part.length
    for (let first = this.#tail[0]; first !== undefined; first = this.#tail[0]) {
      if (this.#tailBytes - first.length < TAIL_BYTES) return
      this.#tailBytes -= first.length
      this.#tail.shift()
    }
  }
}
