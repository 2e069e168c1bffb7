import { type ApiAnswer, type ApiCall, parseBody, publishingHeaders } from './api-call.ts'
import type { PublishResult } from './broker.ts'
import type { LogEvent } from './event-log.ts'
import { cutPage, type Filterable, readFilter } from './filters.ts'
import { type Message, type PublishRequest, RefusedError } from './message.ts'
import { viewMessage } from './message-view.ts'

const LARGEST_LOG_PAGE = 1_000

/** `POST /v2/publish/{destination}`; with `Upstash-Cron` it creates a schedule. */
export function publish(call: ApiCall): ApiAnswer {
  const request = readPublish(call, call.match[0] ?? '')
  if (request.headers['upstash-cron'] !== undefined)
    return { status: 201, body: call.schedules.create(request) }
  return publishAnswer(call.broker.publish(request))
}

/** `POST /v2/enqueue/{queue}/{destination}` */
export function enqueue(call: ApiCall): ApiAnswer {
  const [queueName = '', destination = ''] = call.match
  return publishAnswer(call.broker.publish({ ...readPublish(call, destination), queueName }))
}

/** `POST /v2/batch`: all messages are accepted or none. */
export function batch({ broker, body, callerIp }: ApiCall): ApiAnswer {
  const items = parseBody(body)
  if (!Array.isArray(items)) throw new RefusedError(400, 'expected an array of messages')
  const requests = items.map((item) => readBatchItem(item, callerIp))
  broker.check(requests)
  return { status: 200, body: requests.map((request) => broker.publish(request)) }
}

/** `GET /v2/logs`, by its older name `GET /v2/events`. */
export function listLogs({ broker, query }: ApiCall): ApiAnswer {
  const latestFirst = query.get('order') !== 'earliestFirst'
  const entries = broker.events.latestFirst().filter(readFilter(query))
  if (!latestFirst) entries.reverse()
  const cursorOf = ({ time, sequence }: LogEvent): string => `${time}-${sequence}`
  const { items, ...cursor } = cutPage(entries, cursorOf, query, LARGEST_LOG_PAGE, latestFirst)
  const events = items.map(({ sequence: _sequence, ...entry }) => entry)
  return { status: 200, body: { events, ...cursor } }
}

/** `GET /v2/messages/{messageId}` */
export function getMessage({ broker, match: [messageId = ''] }: ApiCall): ApiAnswer {
  const message = broker.message(messageId)
  if (message === undefined) throw new RefusedError(404, `message ${messageId} not found`)
  return { status: 200, body: viewMessage(message) }
}

/** `DELETE /v2/messages/{messageId}` */
export function cancelMessage({ broker, match: [messageId = ''] }: ApiCall): ApiAnswer {
  const cancelled = broker.cancel([messageId])
  if (cancelled === 0) throw new RefusedError(404, `message ${messageId} not found`)
  return { status: 202, body: { cancelled } }
}

/** `DELETE /v2/messages`: those of the query, or all. */
export function cancelMessages({ broker, query, body }: ApiCall): ApiAnswer {
  // Older clients send the ids in the body.
  const { messageIds } = (body.length > 0 ? parseBody(body) : {}) as { messageIds?: string[] }
  for (const messageId of messageIds ?? []) query.append('messageIds', messageId)
  const accept = readFilter(query)
  const matching = broker.pending().filter((message) => accept(filterable(message)))
  return { status: 202, body: { cancelled: broker.cancel(matching.map(({ messageId }) => messageId)) } }
}

/** What filters look at in a message. */
export function filterable(message: Message): Filterable {
  return { ...message, time: message.createdAt }
}

/** Reads a publish request whose destination is the rest of the path, with the query. */
export function readPublish(call: ApiCall, destination: string): PublishRequest {
  const { headers, body, callerIp, search } = call
  return { url: readDestination(destination) + search, headers, body, callerIp }
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

function readBatchItem(item: unknown, callerIp: string): PublishRequest {
  const { destination, headers, body, queue } = (item ?? {}) as Record<string, unknown>
  if (typeof destination !== 'string') throw new RefusedError(400, 'a message has no destination')
  return {
    url: destination,
    headers: publishingHeaders((headers ?? {}) as Record<string, unknown>),
    body: Buffer.from(typeof body === 'string' ? body : ''),
    callerIp,
    ...(typeof queue === 'string' && { queueName: queue }),
  }
}

/** A duplicate is told from a new message by 202. https://upstash.com/docs/qstash/features/deduplication */
function publishAnswer(result: PublishResult): ApiAnswer {
  return { status: result.deduplicated === true ? 202 : 201, body: result }
}
