import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { Reply } from './reply.ts'

export type HeaderValues = Record<string, string | string[]>

/**
 * An answer in progress: writes to the client and counts the bytes. The request log shows from them how far an answer
 * got and whether the client left early.
 */
export class Exchange {
  bytesWritten = 0
  eventsWritten = 0
  status = 0
  /** When the connection closed before the answer was complete and not by us, in milliseconds since 1970. */
  clientClosedAt: number | null = null
  readonly #response: ServerResponse
  readonly #departure = new AbortController()
  #destroyedByUs = false

  constructor(response: ServerResponse) {
    this.#response = response
    response.once('close', () => {
      if (!response.writableFinished && !this.#destroyedByUs) this.clientClosedAt = Date.now()
      this.#departure.abort()
    })
    // A write to a client that has left fails with an error event, which means no more than `close` does.
    response.on('error', () => {})
  }

  /** Aborted once the connection of this answer is closed, for whatever reason. */
  get departure(): AbortSignal {
    return this.#departure.signal
  }

  /** Whether the whole answer was handed to the operating system. */
  get finished(): boolean {
    return this.#response.writableFinished
  }

  get started(): boolean {
    return this.#response.headersSent
  }

  /** Writes a ready answer and ends it. */
  send(reply: Reply): void {
    if ('body' in reply) {
      this.sendWhole(reply.status, reply.headers, reply.body)
      return
    }
    this.#head(200, reply.headers)
    // All writes of one tick leave in one system call: node corks the socket until the tick ends.
    for (const frame of reply.frames) {
      this.bytesWritten += Buffer.byteLength(frame)
      this.#response.write(frame)
    }
    this.eventsWritten += reply.frames.length
    this.#response.end()
  }

  /** Writes status, headers and one body, and ends the answer. */
  sendWhole(status: number, headers: HeaderValues, body: string | Buffer): void {
    const bytes = Buffer.byteLength(body)
    const framed = 'content-length' in headers || 'transfer-encoding' in headers
    this.#head(status, framed ? headers : { ...headers, 'content-length': String(bytes) })
    this.bytesWritten += bytes
    this.#response.end(body)
  }

  /** Sends status and headers now, before any body. */
  start(status: number, headers: HeaderValues): void {
    if (this.started) return
    this.#head(status, headers)
    this.#response.flushHeaders()
  }

  /**
   * Writes bytes and waits only when the client reads more slowly than we write.
   * Resolves at once when the client has left.
   */
  write(bytes: Buffer | string, events: number): void | Promise<void> {
    if (this.departure.aborted) return
    this.bytesWritten += Buffer.byteLength(bytes)
    this.eventsWritten += events
    if (!this.#response.write(bytes)) return this.#settled((done) => this.#response.once('drain', done))
  }

  /** Writes bytes as a packet of their own: resolves once the operating system has them. */
  async writeApart(bytes: Buffer | string, events: number): Promise<void> {
    if (this.departure.aborted) return
    this.bytesWritten += Buffer.byteLength(bytes)
    this.eventsWritten += events
    await this.#settled((done) => this.#response.write(bytes, done))
    await setImmediate()
  }

  end(): void {
    if (!this.#response.writableEnded) this.#response.end()
  }

  /** Resets the connection, with no answer at all when nothing was written yet. */
  destroy(): void {
    this.#destroyedByUs = true
    const { socket } = this.#response
    if (socket === null) this.#response.destroy()
    else socket.resetAndDestroy()
  }

  #head(status: number, headers: HeaderValues): void {
    this.status = status
    this.#response.writeHead(status, headers)
  }

  /** Waits for what `begin` starts, or for the client to leave, whichever comes first. */
  #settled(begin: (done: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.departure.removeEventListener('abort', done)
        resolve()
      }
      this.departure.addEventListener('abort', done)
      begin(done)
    })
  }
}
