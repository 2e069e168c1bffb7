import type { IncomingHttpHeaders } from 'node:http'
import type { MessageQueue } from './message-queue.ts'
import { viewDeadMessage, viewMessage } from './message-view.ts'
import type { PublishRequest } from './queued-message.ts'
import { RefusedError } from './refused-error.ts'
import type { Schedules } from './schedules.ts'

/** A request whose token has been checked. */
export interface ApiRequest {
  readonly method: string
  /** Path and query as received: a destination URL in it is not decoded. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly callerIp: string
}

/** Status and JSON body of an answer. */
export interface ApiAnswer {
  readonly status: number
  readonly body: unknown
}

interface ApiParts {
  readonly broker: MessageQueue
  readonly schedules: Schedules
}

/** @param id what the route's pattern matched: a destination or an id. @param publish the request as one to publish */
type Endpoint = (parts: ApiParts, id: string, publish: () => PublishRequest) => ApiAnswer

/** Routes by method and path after `/v2/`. https://upstash.com/docs/qstash/api */
const ROUTES: [method: string, path: RegExp, route: Endpoint][] = [
  [
    'POST',
    /^publish\/(.+)$/s,
    ({ broker }, _, publish) => {
      const result = broker.publish(publish())
      // A duplicate is 202, a new message 201. https://upstash.com/docs/qstash/features/deduplication
      return { status: result.deduplicated === true ? 202 : 201, body: result }
    },
  ],
  [
    'GET',
    /^messages\/([^/]+)$/,
    ({ broker }, id) => ok(viewMessage(present(broker.message(id), `message ${id}`))),
  ],
  [
    'DELETE',
    /^messages\/([^/]+)$/,
    ({ broker }, id) => {
      present(broker.cancel(id) || undefined, `message ${id}`)
      return { status: 202, body: { cancelled: 1 } }
    },
  ],
  ['GET', /^dlq\/?$/, ({ broker }) => ok({ messages: broker.deadMessages().map(viewDeadMessage) })],
  [
    'POST',
    /^schedules\/(.+)$/s,
    ({ schedules }, _, publish) => ({ status: 201, body: schedules.create(publish()) }),
  ],
  ['GET', /^schedules\/?$/, ({ schedules }) => ok(schedules.list())],
  ['GET', /^schedules\/([^/]+)$/, ({ schedules }, id) => ok(present(schedules.view(id), `schedule ${id}`))],
  [
    'DELETE',
    /^schedules\/([^/]+)$/,
    ({ schedules }, id) => ok(present(schedules.delete(id) || undefined, `schedule ${id}`) && {}),
  ],
]

const ok = (body: unknown): ApiAnswer => ({ status: 200, body })

/** @throws RefusedError (404) */
function present<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw new RefusedError(404, `${name} not found`)
  return value
}

/** Answers a request to the REST API. A refused request is answered with its status and `{"error": message}`. */
export function answerApi(parts: ApiParts, request: ApiRequest): ApiAnswer {
  const [, path = '', search = ''] = /^\/v2\/([^?]*)(.*)$/s.exec(request.url) ?? []
  for (const [method, pattern, route] of ROUTES) {
    const match = method === request.method ? pattern.exec(path) : null
    if (match === null) continue
    const id = match[1] ?? ''
    try {
      return route(parts, id, () => readPublish(request, id, search))
    } catch (error) {
      if (error instanceof RefusedError) return { status: error.status, body: { error: error.message } }
      throw error
    }
  }
  return { status: 404, body: { error: `${request.method} ${request.url.split('?', 1)[0]} not found` } }
}

/** Reads a publish request whose destination is the rest of the path, with the query. */
function readPublish(request: ApiRequest, destination: string, search: string): PublishRequest {
  const { headers, body, callerIp } = request
  return { url: readDestination(destination) + search, headers: publishingHeaders(headers), body, callerIp }
}

/** SDKs send the destination as it is; other clients encode it. */
function readDestination(destination: string): string {
  if (/^https?:\/\//i.test(destination)) return destination
  try {
    return decodeURIComponent(destination)
  } catch {
    throw new RefusedError(400, 'malformed destination')
  }
}

/** The headers that define how to publish. The others, the token among them, go no further. */
function publishingHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const named = Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')])
  return Object.fromEntries(
    named.filter(([name = '']) => name === 'content-type' || name.startsWith('upstash-')),
  )
}
