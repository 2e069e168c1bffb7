import type { ApiAnswer, ApiCall } from './api-call.ts'
import { filterable } from './api-messages.ts'
import { cutPage, type Page, readFilter } from './filters.ts'
import { type DeadMessage, RefusedError } from './message.ts'
import { viewDeadMessage } from './message-view.ts'

const LARGEST_PAGE = 100

/** `GET /v2/dlq` */
export function listDead(call: ApiCall): ApiAnswer {
  const { items, ...cursor } = selectDead(call)
  return { status: 200, body: { messages: items.map(viewDeadMessage), ...cursor } }
}

/** `GET /v2/dlq/{dlqId}` */
export function getDead({ broker, match: [dlqId = ''] }: ApiCall): ApiAnswer {
  const message = broker.deadMessage(dlqId)
  if (message === undefined) throw new RefusedError(404, `dlq message ${dlqId} not found`)
  return { status: 200, body: viewDeadMessage(message) }
}

/** `DELETE /v2/dlq/{dlqId}` */
export function deleteDead({ broker, match: [dlqId = ''] }: ApiCall): ApiAnswer {
  if (!broker.deleteDead(dlqId)) throw new RefusedError(404, `dlq message ${dlqId} not found`)
  return { status: 200, body: {} }
}

/** `DELETE /v2/dlq` */
export function deleteManyDead(call: ApiCall): ApiAnswer {
  const { items, ...cursor } = selectDead(call)
  for (const { dlqId } of items) call.broker.deleteDead(dlqId)
  return { status: 200, body: { deleted: items.length, ...cursor } }
}

/** `POST /v2/dlq/retry/{dlqId}` */
export function retryDead(call: ApiCall): ApiAnswer {
  return { status: 201, body: call.broker.retryDead(call.match[0] ?? '', overrides(call)) }
}

/** `POST /v2/dlq/retry` */
export function retryManyDead(call: ApiCall): ApiAnswer {
  const { items, ...cursor } = selectDead(call)
  if (items.length === 0 && call.query.has('dlqIds')) throw new RefusedError(404, 'dlq messages not found')
  const headers = overrides(call)
  return {
    status: 201,
    body: { responses: items.map(({ dlqId }) => call.broker.retryDead(dlqId, headers)), ...cursor },
  }
}

/** The messages of `dlqIds`, or else one page of those that match the filters. */
function selectDead({ broker, query }: ApiCall): Page<DeadMessage> {
  const dlqIds = query.getAll('dlqIds').flatMap((value) => value.split(','))
  if (dlqIds.length > 0) return { items: broker.deadMessages().filter(({ dlqId }) => dlqIds.includes(dlqId)) }
  const accept = readFilter(query)
  const matching = broker.deadMessages().filter((message) => accept(filterable(message)))
  return cutPage(matching, ({ dlqId }) => dlqId, query, LARGEST_PAGE, false)
}

/** Only publishing headers: the content type of this request is not that of the message. */
function overrides({ headers }: ApiCall): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => /^upstash-(?!telemetry)/.test(name)))
}
