import type { RedisBackend } from './backend.ts'
import { RedisError, type Reply, StatusReply, toBytes, toText } from './reply.ts'
import { ScriptCache } from './script-cache.ts'

/** A request as far as the REST interface looks at it. */
export interface RestRequest {
  readonly path: string
  readonly body: Buffer
  /** Whether the client requested base64 by `Upstash-Encoding: base64`. */
  readonly base64: boolean
}

/** Status and JSON text of an answer. */
export interface RestAnswer {
  readonly status: number
  readonly text: string
}

type Outcome = { result: Reply } | { error: string }

/**
 * The REST interface of Upstash Redis as its SDK uses it: a command as JSON array in the body, or several for
 * `/pipeline`. https://upstash.com/docs/redis/features/restapi
 */
export class RestFront {
  readonly #backend: RedisBackend
  readonly #scripts = new ScriptCache()

  constructor(backend: RedisBackend) {
    this.#backend = backend
  }

  /** Answers a request that has been authorized. An error of Redis is answered with 400. */
  async answer(request: RestRequest): Promise<RestAnswer> {
    try {
      if (request.path === '/pipeline') {
        const outcomes = await Promise.all(readCommands(request.body).map((words) => this.#attempt(words)))
        return { status: 200, text: toJson(outcomes.map((outcome) => present(outcome, request.base64))) }
      }
      if (request.path !== '/') throw new RedisError('ERR the local REST interface has / and /pipeline only')
      const outcome = await this.#attempt(readCommand(parseJson(request.body)))
      return { status: 'error' in outcome ? 400 : 200, text: toJson(present(outcome, request.base64)) }
    } catch (error) {
      if (!(error instanceof RedisError)) throw error
      return { status: 400, text: toJson({ error: toText(error.message) }) }
    }
  }

  async #attempt(words: string[]): Promise<Outcome> {
    try {
      return { result: await this.#backend.run(this.#scripts.translate(words)) }
    } catch (error) {
      if (error instanceof RedisError) return { error: error.message }
      throw error
    }
  }
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new RedisError('ERR failed to parse request body as JSON')
  }
}

function readCommands(body: Buffer): string[][] {
  const commands = parseJson(body)
  if (!Array.isArray(commands)) throw new RedisError('ERR failed to parse pipeline request')
  return commands.map(readCommand)
}

function readCommand(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0) throw new RedisError('ERR empty command')
  return value.map((word) => {
    const text = typeof word === 'object' && word !== null ? JSON.stringify(word) : String(word)
    return toBytes(text)
  })
}

function present(outcome: Outcome, base64: boolean): unknown {
  if ('error' in outcome) return { error: toText(outcome.error) }
  return { result: presentReply(outcome.result, base64, true) }
}

/**
 * Strings become base64 on request. A bare `OK` stays as it is on the top level only, where clients expect that;
 * inside arrays they decode every string.
 */
function presentReply(reply: Reply, base64: boolean, isTopLevel: boolean): unknown {
  if (Array.isArray(reply)) return reply.map((item) => presentReply(item, base64, false))
  if (reply === null || typeof reply === 'number') return reply
  const bytes = reply instanceof StatusReply ? reply.text : reply
  if (!base64 || (isTopLevel && bytes === 'OK')) return toText(bytes)
  return Buffer.from(bytes, 'latin1').toString('base64')
}

function toJson(body: unknown): string {
  return JSON.stringify(body)
}
