import { isUtf8 } from 'node:buffer'
import type { DeadMessage, QueuedMessage } from './queued-message.ts'

/** A message as `GET /v2/messages/{id}` shows it. */
export function viewMessage(message: QueuedMessage): Record<string, unknown> {
  const { messageId, url, method, createdAt, notBefore, maxRetries, callerIp, scheduleId } = message
  return {
    messageId,
    url,
    method,
    header: toArrays(message.forwardHeaders),
    ...viewBody(message.body, 'body'),
    createdAt,
    notBefore,
    maxRetries,
    callerIP: callerIp,
    scheduleId,
  }
}

/** A message as the DLQ shows it. */
export function viewDeadMessage(message: DeadMessage): Record<string, unknown> {
  return {
    ...viewMessage(message),
    dlqId: message.dlqId,
    responseStatus: message.responseStatus,
    responseHeader: message.responseHeader,
    ...viewBody(message.responseBody, 'responseBody'),
  }
}

/** The body as text under `name`, or in base64 under `<name>Base64` if it is no UTF-8. */
export function viewBody(base64: string, name: 'body' | 'responseBody'): Record<string, string> {
  const bytes = Buffer.from(base64, 'base64')
  return isUtf8(bytes) ? { [name]: bytes.toString('utf8') } : { [`${name}Base64`]: base64 }
}

/** Headers in the form that QStash shows, a list of values each. */
export function toArrays(headers: Record<string, string>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
}
