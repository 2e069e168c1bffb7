import { serialize } from 'pg-protocol'
import type { WebSocket } from 'ws'
import type { EmbeddedSession } from './embedded-backend.ts'
import { SessionBusyError, type SessionLock } from './session-lock.ts'
import {
  CANCEL_REQUEST,
  errorResponse,
  type Frame,
  FrameReader,
  frame,
  GSS_REQUEST,
  lastTransactionStatus,
  parsedStatementName,
  passwordRequest,
  prefixStatementName,
  readyForQuery,
  SSL_REQUEST,
  sessionGreeting,
} from './wire-frames.ts'

let connectionCount = 0

/**
 * One PostgreSQL connection over a WebSocket, on top of the one session of embedded Postgres.
 *
 * Messages are collected up to the next Sync, Flush or simple query and run as one piece. The session is held
 * from there until the server says it is idle, so that a transaction is never interleaved with another.
 */
export class EmbeddedSocket {
  readonly #socket: WebSocket
  readonly #session: EmbeddedSession
  readonly #lock: SessionLock
  readonly #reader = new FrameReader()
  readonly #connection = ++connectionCount
  readonly #statementNames = new Set<string>()
  #phase: 'startup' | 'password' | 'ready' = 'startup'
  #collected: Buffer[] = []
  #release: (() => void) | undefined
  #changedSession = false
  #work: Promise<void> = Promise.resolve()

  constructor(socket: WebSocket, session: EmbeddedSession, lock: SessionLock) {
    this.#socket = socket
    this.#session = session
    this.#lock = lock
  }

  /** Begins to serve; returns at once. */
  serve(): void {
    this.#socket.on('message', (data) => {
      try {
        this.#reader.push(data as Buffer)
        while (this.#step());
      } catch {
        this.#socket.terminate()
      }
    })
    this.#socket.on('error', () => this.#socket.terminate())
    this.#socket.on('close', () => {
      this.#work = this.#work.then(() => this.#leave()).catch(() => {})
    })
  }

  /** Handles what the reader has complete; returns whether there was anything. */
  #step(): boolean {
    if (this.#phase === 'startup') {
      const code = this.#reader.takeStartup()
      if (code !== undefined) this.#receiveStartup(code)
      return code !== undefined
    }
    const message = this.#reader.takeFrame()
    if (message === undefined) return false
    if (this.#phase === 'password') this.#receivePassword(message)
    else this.#receiveMessage(message)
    return true
  }

  #receiveStartup(code: number): void {
    if (code === SSL_REQUEST || code === GSS_REQUEST) this.#socket.send(Buffer.from('N'))
    else if (code === CANCEL_REQUEST) this.#socket.close()
    else {
      this.#phase = 'password'
      this.#socket.send(passwordRequest())
    }
  }

  #receivePassword(message: Frame): void {
    if (message.type !== 'p') throw new Error('expected a password message')
    this.#phase = 'ready'
    this.#socket.send(sessionGreeting(this.#session.parameters))
  }

  #receiveMessage(message: Frame): void {
    if (message.type === 'X') {
      this.#socket.close()
      return
    }
    if (message.type === 'P') {
      const name = parsedStatementName(message)
      if (name !== '') this.#statementNames.add(name)
    }
    if (message.type === 'P' || message.type === 'Q')
      this.#changedSession ||= this.#session.leavesTrace(message)
    this.#collected.push(prefixStatementName(message, this.#prefix))
    if (message.type !== 'S' && message.type !== 'Q' && message.type !== 'H') return
    const batch = Buffer.concat(this.#collected)
    this.#collected = []
    this.#work = this.#work.then(() => this.#run(batch)).catch(() => this.#socket.terminate())
  }

  async #run(batch: Buffer): Promise<void> {
    if (this.#release === undefined) {
      try {
        this.#release = await this.#lock.acquire(`WebSocket connection ${this.#connection}`)
      } catch (error) {
        if (!(error instanceof SessionBusyError)) throw error
        return this.#send(Buffer.concat([errorResponse(error), readyForQuery('I')]))
      }
    }
    const output = await this.#session.exchange(batch)
    if (lastTransactionStatus(output) === 'I') this.#giveBack()
    this.#send(output)
  }

  /** Tidies up what a closed connection left in the shared session. */
  async #leave(): Promise<void> {
    const inTransaction = this.#release !== undefined
    if (!inTransaction && this.#statementNames.size === 0 && !this.#changedSession) return
    this.#release ??= await this.#lock.acquire(`cleaning up after WebSocket connection ${this.#connection}`)
    try {
      // Sync first: a batch that ended in Flush leaves the server in the middle of the extended protocol.
      if (inTransaction)
        await this.#session.exchange(Buffer.concat([frame('S'), serialize.query('ROLLBACK')]))
      for (const name of this.#statementNames) {
        await this.#session.exchange(
          Buffer.concat([serialize.close({ type: 'S', name: this.#prefix + name }), frame('S')]),
        )
      }
      if (this.#changedSession) await this.#session.reset()
    } finally {
      this.#giveBack()
    }
  }

  get #prefix(): string {
    return `c${this.#connection}_`
  }

  #giveBack(): void {
    this.#release?.()
    this.#release = undefined
  }

  #send(output: Buffer): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(output)
  }
}
