import { setTimeout } from 'node:timers/promises'
import { StartError } from '../node/start-error.ts'

const CONNECT_LIMIT_MS = 10_000

/** A client of the inspector protocol, https://chromedevtools.github.io/devtools-protocol/v8/. */
export class Inspector {
  readonly #socket: WebSocket
  readonly #waiting = new Map<
    number,
    { resolve: (result: unknown) => void; reject: (error: Error) => void }
  >()
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => this.#take(String(data)))
    socket.addEventListener('close', () => {
      for (const { reject } of this.#waiting.values())
        reject(new Error('the inspector closed the connection'))
    })
  }

  /** Connects to a workerd that was started with an inspector port. @throws StartError when it does not answer. */
  static async open(port: number): Promise<Inspector> {
    const url = await debuggerUrl(port)
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url)
      socket.addEventListener('open', () => resolve(new Inspector(socket)))
      socket.addEventListener('error', () => reject(new Error('the inspector takes no connection')))
    })
  }

  call(method: string, parameters: Record<string, unknown> = {}): Promise<unknown> {
    this.#lastId += 1
    const id = this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#socket.send(JSON.stringify({ id, method, params: parameters }))
    })
  }

  close(): void {
    this.#socket.close()
  }

  #take(text: string): void {
    const message = JSON.parse(text) as { id?: number; result?: unknown; error?: { message: string } }
    const waiting = message.id === undefined ? undefined : this.#waiting.get(message.id)
    if (message.id === undefined || waiting === undefined) return
    this.#waiting.delete(message.id)
    if (message.error) waiting.reject(new Error(message.error.message))
    else waiting.resolve(message.result)
  }
}

async function debuggerUrl(port: number): Promise<string> {
  const end = performance.now() + CONNECT_LIMIT_MS
  while (performance.now() < end) {
    try {
      const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as Array<
        Record<string, string>
      >
      const url = targets[0]?.webSocketDebuggerUrl
      if (url !== undefined) return url
    } catch {
      // The inspector does not listen yet: retry.
    }
    await setTimeout(100)
  }
  throw new StartError(`the inspector on port ${port} does not answer`)
}
