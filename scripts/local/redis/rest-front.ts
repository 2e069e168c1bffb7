import type { RedisBackend } from './backend.ts'
import { RedisError, type Reply, StatusReply, toBytes, toText } from './reply.ts'
import { ScriptCache } from './script-cache.ts'

/** A request as far as the REST interface looks at it. */
export interface RestRequest {
  /** Path and query, as received. */
  readonly url: string
  readonly body: Buffer
  /** Whether the client asked for base64 by `Upstash-Encoding: base64`. */
  readonly base64: boolean
}

/** Status and JSON text of an answer. */
export interface RestAnswer {
  readonly status: number
  readonly text: string
}

type Outcome = { result: Reply } | { error: string }

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

/**
 * The REST interface of Upstash Redis: a command as JSON array in the body or as path, `/pipeline` and
 * `/multi-exec`. https://upstash.com/docs/redis/features/restapi
 */
export class RestFront {
  readonly #backend: RedisBackend
  readonly #scripts = new ScriptCache()

  constructor(backend: RedisBackend) {
    this.#backend = backend
  }

  /** Answers a request that has been authorized. What Redis refuses is answered with 400. */
  async answer(request: RestRequest): Promise<RestAnswer> {
    try {
      const { pathname, searchParams } = new URL(request.url, 'http://local')
      const path = pathname.split('/').filter((part) => part !== '')
      if (path.length === 1 && path[0] === 'pipeline') {
        const outcomes = await Promise.all(readCommands(request.body).map((words) => this.#attempt(words)))
        return { status: 200, text: toJson(outcomes.map((outcome) => present(outcome, request.base64))) }
      }
      if (path.length === 1 && path[0] === 'multi-exec') {
        const outcomes = await this.#transaction(readCommands(request.body))
        return { status: 200, text: toJson(outcomes.map((outcome) => present(outcome, request.base64))) }
      }
      const words =
        path.length === 0 ? readCommand(parseJson(request.body)) : readPath(path, searchParams, request.body)
      const outcome = await this.#attempt(words)
      return { status: 'error' in outcome ? 400 : 200, text: toJson(present(outcome, request.base64)) }
    } catch (error) {
      if (!(error instanceof RedisError)) throw error
      return { status: 400, text: toJson({ error: toText(error.message) }) }
    }
  }

  async #attempt(words: string[]): Promise<Outcome> {
    try {
      const translated = this.#scripts.translate(words)
      return { result: 'reply' in translated ? translated.reply : await this.#backend.run(translated.words) }
    } catch (error) {
      if (error instanceof RedisError) return { error: error.message }
      throw error
    }
  }

  /** An unknown script fails alone, as it does when EXEC reaches it; the other commands still run. */
  async #transaction(commands: string[][]): Promise<Outcome[]> {
    const outcomes: (Outcome | undefined)[] = []
    const queued: string[][] = []
    for (const words of commands) {
      try {
        const translated = this.#scripts.translate(words)
        if ('reply' in translated) outcomes.push({ result: translated.reply })
        else {
          outcomes.push(undefined)
          queued.push(translated.words)
        }
      } catch (error) {
        outcomes.push({ error: (error as Error).message })
      }
    }
    const replies = queued.length === 0 ? [] : await this.#backend.transaction(queued)
    return outcomes.map((outcome) => {
      if (outcome !== undefined) return outcome
      const reply = replies.shift() ?? null
      return reply instanceof RedisError ? { error: reply.message } : { result: reply }
    })
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

/** `/set/key/value?EX=10`: the body, if any, and then the query follow the words of the path. */
function readPath(path: string[], query: URLSearchParams, body: Buffer): string[] {
  const words = path.map((part) => {
    try {
      return toBytes(decodeURIComponent(part))
    } catch {
      throw new RedisError('ERR malformed path')
    }
  })
  if (body.length > 0) words.push(body.toString('latin1'))
  for (const [name, value] of query) {
    if (name === '_token') continue
    words.push(toBytes(name))
    if (value !== '') words.push(toBytes(value))
  }
  return words
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
  if (typeof reply === 'bigint') return rawJSON(reply.toString())
  if (reply === null || typeof reply === 'number') return reply
  const bytes = reply instanceof StatusReply ? reply.text : reply
  if (!base64 || (isTopLevel && bytes === 'OK')) return toText(bytes)
  return Buffer.from(bytes, 'latin1').toString('base64')
}

function toJson(body: unknown): string {
  return JSON.stringify(body)
}
