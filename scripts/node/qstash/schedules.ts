import { randomUUID } from 'node:crypto'
import { CronExpressionParser } from 'cron-parser'
import type { RecordCollection, RecordStore } from '../record-store.ts'
import type { MessageQueue } from './message-queue.ts'
import { toArrays, viewBody } from './message-view.ts'
import type { QueueClock } from './queue-clock.ts'
import { createMessage, type PublishRequest } from './queued-message.ts'
import { RefusedError } from './refused-error.ts'

/** A schedule; times are in milliseconds since 1970. */
interface Schedule {
  readonly scheduleId: string
  readonly cron: string
  readonly url: string
  /** The publishing headers of each message. */
  readonly headers: Record<string, string>
  /** Base64. */
  readonly body: string
  readonly callerIp: string
  readonly createdAt: number
  readonly nextAt: number
  readonly lastAt?: number
}

/**
 * Number of missed times that are delivered late when the clock jumps. After more, the schedule continues from the
 * present.
 */
const MAX_CATCH_UP = 1_000
/** Longest delay of setTimeout, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Publishes messages by cron expressions. https://upstash.com/docs/qstash/features/schedules */
export class Schedules {
  readonly #schedules: RecordCollection<Schedule>
  readonly #broker: MessageQueue
  readonly #clock: QueueClock
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(store: RecordStore, broker: MessageQueue, clock: QueueClock) {
    this.#schedules = store.collection('schedule')
    this.#broker = broker
    this.#clock = clock
    clock.onAdvance(() => this.#fire())
  }

  /** Begins to fire. Times that passed while the process was down are left out. */
  start(): void {
    const now = this.#clock.now()
    for (const schedule of this.#schedules.values()) {
      if (schedule.nextAt > now) continue
      this.#schedules.set(schedule.scheduleId, { ...schedule, nextAt: nextTime(schedule.cron, now) })
    }
    this.#fire()
  }

  /**
   * Creates a schedule, or replaces the one with the id of `Upstash-Schedule-Id`.
   *
   * @throws RefusedError (400) for a malformed cron expression, destination or header
   */
  create(request: PublishRequest): { scheduleId: string } {
    const { 'upstash-cron': cron = '', 'upstash-schedule-id': given, ...headers } = request.headers
    const now = this.#clock.now()
    const nextAt = nextTime(cron, now)
    createMessage({ ...request, headers }, now)
    const scheduleId = given ?? `scd_${randomUUID().replaceAll('-', '')}`
    if (!/^[\w.-]+$/.test(scheduleId)) throw new RefusedError(400, `invalid schedule id ${scheduleId}`)
    this.#schedules.set(scheduleId, {
      scheduleId,
      cron,
      url: request.url,
      headers,
      body: request.body.toString('base64'),
      callerIp: request.callerIp,
      createdAt: now,
      nextAt,
    })
    this.#fire()
    return { scheduleId }
  }

  list(): Record<string, unknown>[] {
    return this.#schedules.values().map(viewSchedule)
  }

  view(scheduleId: string): Record<string, unknown> | undefined {
    const schedule = this.#schedules.get(scheduleId)
    return schedule && viewSchedule(schedule)
  }

  /** @returns whether there was such a schedule */
  delete(scheduleId: string): boolean {
    return this.#schedules.delete(scheduleId)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  /** Publishes what is due and sets the timer for the next time. */
  #fire(): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    const next = Math.min(...this.#schedules.values().map((schedule) => this.#catchUp(schedule)))
    if (next === Number.POSITIVE_INFINITY) return
    const delay = Math.min(MAX_TIMER_MS, Math.max(1, next - this.#clock.now()))
    this.#timer = setTimeout(() => this.#fire(), delay)
  }

  /** @returns when the schedule is due next */
  #catchUp(schedule: Schedule): number {
    const now = this.#clock.now()
    let { nextAt } = schedule
    for (let count = 0; nextAt <= now; count++) {
      const at = nextAt
      nextAt = nextTime(schedule.cron, count < MAX_CATCH_UP ? at : now)
      // Stored first: a kill in between loses one message, which is better than one for every restart.
      this.#schedules.set(schedule.scheduleId, { ...schedule, nextAt, lastAt: at })
      this.#publish(schedule)
    }
    return nextAt
  }

  #publish({ url, headers, body, callerIp, scheduleId }: Schedule): void {
    this.#broker.publish({ url, headers, callerIp, scheduleId, body: Buffer.from(body, 'base64') })
  }
}

/** The first time after `after` that a five-field cron expression names, in UTC unless it begins with `CRON_TZ=`. */
function nextTime(expression: string, after: number): number {
  const [, tz = 'UTC', cron = ''] = /^(?:CRON_TZ=(\S+)\s+)?(.*)$/s.exec(expression.trim()) ?? []
  // The parser also takes seconds and aliases; QStash's resolution is one minute.
  if (cron.split(/\s+/).length !== 5) throw new RefusedError(400, `invalid cron expression "${expression}"`)
  try {
    return CronExpressionParser.parse(cron, { currentDate: new Date(after), tz })
      .next()
      .getTime()
  } catch (error) {
    throw new RefusedError(400, `invalid cron expression "${expression}": ${(error as Error).message}`)
  }
}

function viewSchedule(schedule: Schedule): Record<string, unknown> {
  const { scheduleId, cron, url, createdAt, callerIp, nextAt, lastAt } = schedule
  const message = createMessage({ ...schedule, body: Buffer.alloc(0) }, createdAt)
  return {
    scheduleId,
    cron,
    destination: url,
    createdAt,
    method: message.method,
    header: toArrays(message.forwardHeaders),
    ...viewBody(schedule.body, 'body'),
    retries: message.maxRetries,
    isPaused: false,
    callerIP: callerIp,
    nextScheduleTime: nextAt,
    lastScheduleTime: lastAt,
  }
}
