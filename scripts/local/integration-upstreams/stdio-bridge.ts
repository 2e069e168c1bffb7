import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createInterface } from 'node:readline'
import { readBody, sendJson } from '../../node/loopback-server.ts'

interface Message {
  id?: string | number
  method?: string
  [member: string]: unknown
}

const LARGEST_BODY = 4 * 1024 * 1024
const ANSWER_LIMIT_MS = 30_000

/**
 * Serves an MCP server with transport stdio over streamable HTTP, without sessions: all clients share the process,
 * which starts with the first request.
 */
export class StdioBridge {
  readonly #command: readonly string[]
  readonly #environment: NodeJS.ProcessEnv
  #child: ChildProcessWithoutNullStreams | null = null
  /** Waiting calls by the id that the server gets: clients choose equal ids. */
  readonly #waiting = new Map<number, (answer: Message) => void>()
  #next = 1

  /** @param command program and arguments. */
  constructor(command: readonly string[], environment: NodeJS.ProcessEnv) {
    this.#command = command
    this.#environment = environment
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') return sendJson(response, 405, { error: 'only POST' })
    const message = JSON.parse((await readBody(request, LARGEST_BODY)).toString('utf8')) as Message
    if (message.id === undefined) {
      this.#send(message)
      response.writeHead(202).end()
      return
    }
    const answer = await this.#call(message)
    sendJson(response, 200, { ...answer, id: message.id })
  }

  stop(): void {
    this.#child?.kill()
    this.#child = null
  }

  #call(message: Message): Promise<Message> {
    const id = this.#next
    this.#next += 1
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('the server does not answer')), ANSWER_LIMIT_MS)
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer)
        resolve(answer)
      })
      this.#send({ ...message, id })
    })
  }

  #send(message: Message): void {
    this.#child ??= this.#start()
    this.#child.stdin.write(`${JSON.stringify(message)}\n`)
  }

  #start(): ChildProcessWithoutNullStreams {
    const [program = '', ...words] = this.#command
    const child = spawn(program, words, { env: this.#environment, stdio: 'pipe' })
    child.stderr.resume()
    child.stdin.on('error', () => {})
    child.on('error', () => this.#ended(child))
    child.on('exit', () => this.#ended(child))
    createInterface({ input: child.stdout }).on('line', (line) => this.#received(line))
    return child
  }

  /** The next request starts it again. */
  #ended(child: ChildProcessWithoutNullStreams): void {
    if (this.#child !== child) return
    this.#child = null
    const error = { code: -32603, message: 'the server has ended' }
    for (const answer of this.#waiting.values()) answer({ jsonrpc: '2.0', error })
    this.#waiting.clear()
  }

  #received(line: string): void {
    const message = JSON.parse(line) as Message
    // Requests and notifications of the server have no client to go to.
    if (message.method !== undefined || typeof message.id !== 'number') return
    this.#waiting.get(message.id)?.(message)
    this.#waiting.delete(message.id)
  }
}
