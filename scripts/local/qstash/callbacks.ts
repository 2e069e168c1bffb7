import type { DeliveryOutcome } from './delivery.ts'
import { createMessage, type Message } from './message.ts'
import { toArrays } from './message-view.ts'

/**
 * Makes the message that reports one attempt to the callback URL.
 * https://upstash.com/docs/qstash/features/callbacks
 *
 * @param now milliseconds since 1970
 * @returns nothing if the message has no callback
 */
export function createCallback(message: Message, outcome: DeliveryOutcome, now: number): Message | undefined {
  if (message.callback === undefined) return undefined
  return createReport(message, message.callback, 'callback', reportBody(message, outcome), now)
}

/** Makes the message that reports exhausted retries to the failure callback URL. */
export function createFailureCallback(
  message: Message,
  outcome: DeliveryOutcome,
  dlqId: string,
  now: number,
): Message | undefined {
  if (message.failureCallback === undefined) return undefined
  const body = { ...reportBody(message, outcome), dlqId }
  return createReport(message, message.failureCallback, 'failure-callback', body, now)
}

function reportBody(message: Message, outcome: DeliveryOutcome): Record<string, unknown> {
  return {
    status: outcome.status,
    header: outcome.headers,
    body: outcome.body.toString('base64'),
    retried: message.retried,
    maxRetries: message.maxRetries,
    sourceMessageId: message.messageId,
    url: message.url,
    method: message.method,
    sourceHeader: toArrays(message.forwardHeaders),
    sourceBody: message.body,
    notBefore: message.notBefore,
    createdAt: message.createdAt,
    callerIP: message.callerIp,
    ...(message.scheduleId !== undefined && { scheduleId: message.scheduleId }),
  }
}

function createReport(
  message: Message,
  url: string,
  kind: 'callback' | 'failure-callback',
  body: Record<string, unknown>,
  now: number,
): Message {
  return createMessage(
    {
      url,
      headers: callbackHeaders(message, kind),
      body: Buffer.from(JSON.stringify(body)),
      callerIp: message.callerIp,
    },
    now,
  )
}

/** `Upstash-Callback-Delay` is `Upstash-Delay` for the callback, and so on; the retries are those of the message. */
function callbackHeaders(message: Message, kind: 'callback' | 'failure-callback'): Record<string, string> {
  const prefix = `upstash-${kind}-`
  const configured = Object.entries(message.publishHeaders)
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, value]) => [`upstash-${name.slice(prefix.length)}`, value])
  return {
    'upstash-retries': String(message.maxRetries),
    'content-type': 'application/json',
    ...Object.fromEntries(configured),
  }
}
