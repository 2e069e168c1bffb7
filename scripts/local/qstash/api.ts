import type { IncomingHttpHeaders } from 'node:http'
import { type ApiAnswer, type ApiCall, type ApiParts, publishingHeaders } from './api-call.ts'
import { deleteDead, deleteManyDead, getDead, listDead, retryDead, retryManyDead } from './api-dlq.ts'
import {
  batch,
  cancelMessage,
  cancelMessages,
  enqueue,
  getMessage,
  listLogs,
  publish,
} from './api-messages.ts'
import {
  createSchedule,
  deleteQueue,
  deleteSchedule,
  getQueue,
  getSchedule,
  listQueues,
  listSchedules,
  pauseQueue,
  pauseSchedule,
  upsertQueue,
} from './api-schedules.ts'
import { RefusedError } from './message.ts'

/** A request whose token has been checked. */
export interface ApiRequest {
  readonly method: string
  /** Path and query as received: a destination URL in it is not decoded. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly callerIp: string
}

/** Routes by method and path after `/v2/`; the first that matches answers. https://upstash.com/docs/qstash/api */
const ROUTES: [methods: string, path: RegExp, route: (call: ApiCall) => ApiAnswer][] = [
  ['POST', /^publish\/(.+)$/s, publish],
  ['POST', /^enqueue\/([^/]+)\/(.+)$/s, enqueue],
  ['POST', /^batch\/?$/, batch],
  ['GET', /^(?:events|logs)\/?$/, listLogs],
  ['GET', /^messages\/([^/]+)$/, getMessage],
  ['DELETE', /^messages\/([^/]+)$/, cancelMessage],
  ['DELETE', /^messages\/?$/, cancelMessages],
  ['GET', /^dlq\/?$/, listDead],
  ['DELETE', /^dlq\/?$/, deleteManyDead],
  ['POST', /^dlq\/retry\/?$/, retryManyDead],
  ['POST', /^dlq\/retry\/([^/]+)$/, retryDead],
  ['GET', /^dlq\/([^/]+)$/, getDead],
  ['DELETE', /^dlq\/([^/]+)$/, deleteDead],
  ['GET', /^schedules\/?$/, listSchedules],
  // The SDK sends PATCH, the documentation says POST.
  ['PATCH POST', /^schedules\/([^/]+)\/(pause|resume)$/, pauseSchedule],
  ['POST', /^schedules\/(.+)$/s, createSchedule],
  ['GET', /^schedules\/([^/]+)$/, getSchedule],
  ['DELETE', /^schedules\/([^/]+)$/, deleteSchedule],
  ['GET', /^queues\/?$/, listQueues],
  ['POST', /^queues\/?$/, upsertQueue],
  ['POST', /^queues\/([^/]+)\/(pause|resume)$/, pauseQueue],
  ['GET', /^queues\/([^/]+)$/, getQueue],
  ['DELETE', /^queues\/([^/]+)$/, deleteQueue],
]

/** Answers a request to the REST API. What it refuses is answered with its status and `{"error": message}`. */
export function answerApi(parts: ApiParts, request: ApiRequest): ApiAnswer {
  const [, path = '', search = ''] = /^\/v2\/([^?]*)(.*)$/s.exec(request.url) ?? []
  const { body, callerIp } = request
  for (const [methods, pattern, route] of ROUTES) {
    const match = methods.split(' ').includes(request.method) ? pattern.exec(path) : null
    if (match === null) continue
    const query = new URLSearchParams(search)
    const headers = publishingHeaders(request.headers)
    try {
      return route({ ...parts, match: match.slice(1), search, query, headers, body, callerIp })
    } catch (error) {
      if (error instanceof RefusedError) return { status: error.status, body: { error: error.message } }
      throw error
    }
  }
  return { status: 404, body: { error: `${request.method} ${request.url.split('?', 1)[0]} not found` } }
}
