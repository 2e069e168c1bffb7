import type { Broker } from './broker.ts'
import { RefusedError } from './message.ts'
import type { Queues } from './queues.ts'
import type { Schedules } from './schedules.ts'

/** What the routes work on; `now` gives milliseconds since 1970. */
export interface ApiParts {
  readonly broker: Broker
  readonly queues: Queues
  readonly schedules: Schedules
  readonly now: () => number
}

/** One request to the API, after its token was checked and its route was found. */
export interface ApiCall extends ApiParts {
  /** What the parentheses of the route's pattern matched. */
  readonly match: string[]
  /** The query with its question mark: part of the destination where there is one. */
  readonly search: string
  readonly query: URLSearchParams
  /** Those that say how to publish. */
  readonly headers: Record<string, string>
  readonly body: Buffer
  readonly callerIp: string
}

/** Status and JSON body of an answer. */
export interface ApiAnswer {
  readonly status: number
  readonly body?: unknown
}

/**
 * Keeps the headers that say how to publish: the content type and those that begin with `upstash-`. The others, the
 * token among them, go no further.
 */
export function publishingHeaders(headers: Record<string, unknown>): Record<string, string> {
  const named = Object.entries(headers).map(([name, value]) => [
    name.toLowerCase(),
    [value ?? ''].flat().join(', '),
  ])
  return Object.fromEntries(
    named.filter(([name = '']) => name === 'content-type' || name.startsWith('upstash-')),
  )
}

/** @throws RefusedError (400) if the body is no JSON */
export function parseBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new RefusedError(400, 'request body is not valid JSON')
  }
}
