import { randomUUID } from 'node:crypto'
import { parseDuration } from './durations.ts'
import { RefusedError } from './refused-error.ts'
import { retryDelay } from './retry-delay.ts'

/** A message as publish and schedules submit it. */
export interface PublishRequest {
  /** The destination URL, exactly as received. */
  readonly url: string
  /** `content-type` and the `upstash-` headers, with lower-case names. */
  readonly headers: Record<string, string>
  readonly body: Buffer
  readonly callerIp: string
  readonly scheduleId?: string
}

/** A message that waits for delivery. Times are in milliseconds since 1970. */
export interface QueuedMessage {
  readonly messageId: string
  readonly url: string
  readonly method: string
  /** The headers that reach the destination. */
  readonly forwardHeaders: Record<string, string>
  /** Base64. */
  readonly body: string
  readonly createdAt: number
  readonly notBefore: number
  readonly nextDeliveryAt: number
  readonly retried: number
  readonly maxRetries: number
  /** Expression for the delay of each retry. */
  readonly retryDelay?: string
  readonly timeoutMs: number
  readonly scheduleId?: string
  readonly callerIp: string
}

/** A message whose retries are exhausted, with the last answer. */
export interface DeadMessage extends QueuedMessage {
  readonly dlqId: string
  readonly responseStatus: number
  readonly responseHeader: Record<string, string[]>
  /** Base64. */
  readonly responseBody: string
}

/** The free plan's longest wait for an answer, in milliseconds. */
const DEFAULT_TIMEOUT_MS = 15 * 60_000
const DEFAULT_RETRIES = 3
/** The pay-as-you-go plan's longest delay, in milliseconds. */
const MAX_DELAY_MS = 366 * 86_400_000
/** Longest wait for an answer that is taken, in milliseconds. */
const MAX_TIMEOUT_MS = 86_400_000
const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** Features of QStash that are not here: refused, since ignoring them would change what is delivered. */
const UNSUPPORTED =
  /^upstash-(content-based-deduplication|flow-control-.*|label|queue-name|not-before|(failure-)?callback.*)$/

/**
 * Makes a message from a publish request.
 *
 * @param now milliseconds since 1970
 * @throws RefusedError (400) for a destination or a header that QStash would refuse
 */
export function createMessage(request: PublishRequest, now: number): QueuedMessage {
  const { url, headers, body, callerIp, scheduleId } = request
  const header = (name: string): string | undefined => headers[`upstash-${name}`]
  const unsupported = Object.keys(headers).find((name) => UNSUPPORTED.test(name))
  if (unsupported !== undefined) throw new RefusedError(400, `the local QStash has no ${unsupported}`)
  checkUrl(url)
  const notBefore = now + (readDuration(header('delay'), 'delay', MAX_DELAY_MS) ?? 0)
  const method = (header('method') ?? 'POST').toUpperCase()
  if (!METHODS.has(method)) throw new RefusedError(400, `invalid method ${method}`)
  const delayOfRetry = header('retry-delay')
  if (delayOfRetry !== undefined) retryDelay(delayOfRetry, 0)
  return {
    messageId: `msg_${randomUUID().replaceAll('-', '')}`,
    url,
    method,
    forwardHeaders: readForwardHeaders(headers),
    body: body.toString('base64'),
    createdAt: now,
    notBefore,
    nextDeliveryAt: notBefore,
    retried: 0,
    maxRetries: readCount(header('retries'), DEFAULT_RETRIES),
    timeoutMs: readDuration(header('timeout'), 'timeout', MAX_TIMEOUT_MS) ?? DEFAULT_TIMEOUT_MS,
    callerIp,
    ...(delayOfRetry !== undefined && { retryDelay: delayOfRetry }),
    ...(scheduleId !== undefined && { scheduleId }),
  }
}

/** @throws RefusedError (400) unless it is an absolute http or https URL */
function checkUrl(url: string): void {
  if (!/^https?:\/\//i.test(url)) {
    throw new RefusedError(
      400,
      'invalid destination url: endpoint has invalid scheme, add http:// or https://',
    )
  }
  if (!URL.canParse(url)) throw new RefusedError(400, 'invalid destination url')
}

function readDuration(text: string | undefined, name: string, most: number): number | undefined {
  if (text === undefined) return undefined
  const duration = parseDuration(text)
  if (duration === undefined || duration > most) throw new RefusedError(400, `invalid ${name}: ${text}`)
  return duration
}

function readCount(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback
  if (!/^\d{1,4}$/.test(text)) throw new RefusedError(400, `invalid retries: ${text}`)
  return Number(text)
}

function readForwardHeaders(headers: Record<string, string>): Record<string, string> {
  const forwarded: Record<string, string> = {}
  if (headers['content-type'] !== undefined) forwarded['content-type'] = headers['content-type']
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith('upstash-forward-')) forwarded[name.slice('upstash-forward-'.length)] = value
  }
  return forwarded
}
