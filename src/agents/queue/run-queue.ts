import { Client, Receiver, SignatureError } from '@upstash/qstash'
import { withinTime } from '../../lib/time-limit.ts'

/** The paths of this deployment that QStash delivers to. */
export const DELIVERY_PATHS = {
  runs: '/internal/agents/runs',
  verdicts: '/internal/agents/verdicts',
  schedules: '/internal/agents/schedules',
} as const
type DeliveryPath = (typeof DELIVERY_PATHS)[keyof typeof DELIVERY_PATHS]

/** A message that is delivered at least once, signed, to a path of this deployment. */
interface QueueMessage {
  path: DeliveryPath
  /** JSON. */
  body: Record<string, unknown>
  /** A second message of the same id within ten minutes is dropped. */
  deduplicationId: string
  /** Milliseconds until it is delivered; rounded up to seconds. */
  delay?: number
}

/** QStash, as agents use it. Every method throws when QStash does not accept the request within some seconds. */
export interface RunQueue {
  publish(message: QueueMessage): Promise<void>
  /** Creates or replaces a schedule. @param cron five fields, in UTC or with `CRON_TZ=`. */
  putSchedule(id: string, cron: string, body: Record<string, unknown>): Promise<void>
  /** Removes a schedule; one that does not exist is no error. */
  removeSchedule(id: string): Promise<void>
  /**
   * Verifies the signature of a delivery: key, time, URL and body.
   * @returns the unique id of the signature, which a replay repeats; null for a delivery that QStash has not signed.
   */
  verify(signature: string, body: string, path: DeliveryPath): Promise<string | null>
}

interface QueueConfiguration {
  BASE_URL?: string | undefined
  QSTASH_URL?: string | undefined
  QSTASH_TOKEN?: string | undefined
  QSTASH_CURRENT_SIGNING_KEY?: string | undefined
  QSTASH_NEXT_SIGNING_KEY?: string | undefined
  RUN_DELIVERY_MS: number
}

const PUBLISH_LIMIT_MS = 5_000
/** A delivery ends before it, so that QStash waits for its answer. */
const ANSWER_MARGIN_SECONDS = 60
/**
 * Number of retries of QStash. Messages that none of them delivers are repeated by the sweep.
 * https://upstash.com/docs/qstash/features/retry
 */
const RETRIES = 3
/**
 * Milliseconds before each repetition: 2 s, 12 s, 72 s. The first one finds the next process after a crash; QStash's own first
 * one comes after 12 s. https://upstash.com/docs/qstash/features/retry
 */
const RETRY_DELAY = 'pow(6, retried) * 2000'
/** Between the clocks of QStash and of this isolate. */
const CLOCK_TOLERANCE_SECONDS = 5

/** @returns null where QStash or the public origin is not configured: agents cannot run then. */
export function createRunQueue(configuration: QueueConfiguration): RunQueue | null {
  const { BASE_URL: base, QSTASH_TOKEN: token, QSTASH_URL: baseUrl } = configuration
  const { QSTASH_CURRENT_SIGNING_KEY: currentSigningKey, QSTASH_NEXT_SIGNING_KEY: nextSigningKey } =
    configuration
  if (!base || !token || !currentSigningKey || !nextSigningKey) return null
  // `devMode: false`: otherwise the environment could make it accept published signing keys.
  const receiver = new Receiver({ currentSigningKey, nextSigningKey, devMode: false })
  const client = new Client({
    token,
    ...(baseUrl && { baseUrl }),
    devMode: false,
    enableTelemetry: false,
    retry: { retries: 1, backoff: () => 200 },
  })
  const limited = <Result>(work: Promise<Result>) => withinTime(work, PUBLISH_LIMIT_MS, 'QStash')
  const timeout = Math.ceil(configuration.RUN_DELIVERY_MS / 1_000) + ANSWER_MARGIN_SECONDS
  return {
    async publish({ path, body, deduplicationId, delay = 0 }) {
      const seconds = Math.ceil(delay / 1_000)
      const url = `${base}${path}`
      const message = { url, body, deduplicationId, retries: RETRIES, retryDelay: RETRY_DELAY, timeout }
      await limited(client.publishJSON({ ...message, ...(seconds > 0 && { delay: seconds }) }))
    },
    async putSchedule(scheduleId, cron, body) {
      const destination = `${base}${DELIVERY_PATHS.schedules}`
      const headers = { 'content-type': 'application/json' }
      const schedule = { scheduleId, cron, destination, headers, body: JSON.stringify(body) }
      await limited(client.schedules.create({ ...schedule, retries: RETRIES, retryDelay: RETRY_DELAY }))
    },
    async removeSchedule(scheduleId) {
      await limited(client.schedules.delete(scheduleId).catch(ignoreUnknown))
    },
    async verify(signature, body, path) {
      const url = `${base}${path}`
      try {
        await receiver.verify({ signature, body, url, clockTolerance: CLOCK_TOLERANCE_SECONDS })
      } catch (error) {
        if (error instanceof SignatureError) return null
        throw error
      }
      return signatureId(signature)
    },
  }
}

function ignoreUnknown(error: unknown): void {
  if ((error as { status?: number }).status !== 404) throw error
}

/** The claim `jti` of a verified token. */
function signatureId(token: string): string | null {
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
  return typeof claims.jti === 'string' && claims.jti !== '' ? claims.jti : null
}
