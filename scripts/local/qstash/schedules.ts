import { randomUUID } from 'node:crypto'
import { CronExpressionParser } from 'cron-parser'
import type { AdjustableClock } from '../adjustable-clock.ts'
import type { Broker } from './broker.ts'
import { parseDuration } from './durations.ts'
import { createMessage, type PublishRequest, RefusedError } from './message.ts'
import { toArrays, viewBody } from './message-view.ts'
import type { RecordCollection, RecordStore } from './record-store.ts'

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
  readonly queueName?: string
  readonly createdAt: number
  readonly isPaused: boolean
  readonly nextAt: number
  readonly lastAt?: number
}

/** How many missed times are made up for when the clock jumps; beyond, the schedule goes on from the present. */
const MAX_CATCH_UP = 1_000
/** Longest delay of setTimeout, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Publishes messages by cron expressions. https://upstash.com/docs/qstash/features/schedules */
export class Schedules {
  readonly #schedules: RecordCollection<Schedule>
  readonly #broker: Broker
  readonly #clock: AdjustableClock
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(store: RecordStore, broker: Broker, clock: AdjustableClock) {
    this.#schedules = store.collection('schedule')
    this.#broker = broker
    this.#clock = clock
    clock.onAdvance(() => this.#fire())
  }

  /** Begins to fire. Times that passed while the process was down are left out. */
  start(): void {
    for (const schedule of this.#schedules.values()) {
      if (schedule.nextAt <= this.#clock.now()) this.#reschedule(schedule)
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
    const queueName = request.queueName ?? headers['upstash-queue-name']
    this.#schedules.set(scheduleId, {
      scheduleId,
      cron,
      url: request.url,
      headers,
      body: request.body.toString('base64'),
      callerIp: request.callerIp,
      createdAt: now,
      isPaused: false,
      nextAt,
      ...(queueName !== undefined && { queueName }),
    })
    this.#fire()
    return { scheduleId }
  }

  list(): Record<string, unknown>[] {
    return this.#schedules.values().map(viewSchedule)
  }

  /** @throws RefusedError (404) */
  view(scheduleId: string): Record<string, unknown> {
    return viewSchedule(this.#find(scheduleId))
  }

  /** @throws RefusedError (404) */
  delete(scheduleId: string): void {
    this.#find(scheduleId)
    this.#schedules.delete(scheduleId)
    this.#fire()
  }

  /** A paused schedule lets its times pass; a resumed one goes on with the next. */
  setPaused(scheduleId: string, isPaused: boolean): void {
    const schedule = this.#find(scheduleId)
    if (schedule.isPaused === isPaused) return
    this.#reschedule({ ...schedule, isPaused })
    this.#fire()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #find(scheduleId: string): Schedule {
    const schedule = this.#schedules.get(scheduleId)
    if (schedule === undefined) throw new RefusedError(404, `schedule ${scheduleId} not found`)
    return schedule
  }

  #reschedule(schedule: Schedule): void {
    this.#schedules.set(schedule.scheduleId, {
      ...schedule,
      nextAt: nextTime(schedule.cron, this.#clock.now()),
    })
  }

  /** Publishes what is due and sets the timer for the next time. */
  #fire(): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    const running = this.#schedules.values().filter(({ isPaused }) => !isPaused)
    const next = Math.min(...running.map((schedule) => this.#catchUp(schedule)))
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

  #publish({ url, headers, body, callerIp, queueName, scheduleId }: Schedule): void {
    this.#broker.publish({
      url,
      headers,
      callerIp,
      scheduleId,
      body: Buffer.from(body, 'base64'),
      ...(queueName !== undefined && { queueName }),
    })
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
  const { scheduleId, cron, url, headers, createdAt, isPaused, nextAt, lastAt } = schedule
  const { forwardHeaders, method, maxRetries, callback, failureCallback, labels, retryDelay } = createMessage(
    { ...schedule, body: Buffer.alloc(0) },
    createdAt,
  )
  const delay = headers['upstash-delay']
  return {
    scheduleId,
    cron,
    destination: url,
    createdAt,
    method,
    header: toArrays(forwardHeaders),
    ...viewBody(schedule.body, 'body'),
    retries: maxRetries,
    isPaused,
    callerIP: schedule.callerIp,
    nextScheduleTime: nextAt,
    ...(lastAt !== undefined && { lastScheduleTime: lastAt }),
    ...(delay !== undefined && { delay: (parseDuration(delay) ?? 0) / 1_000 }),
    ...(schedule.queueName !== undefined && { queueName: schedule.queueName }),
    ...(callback !== undefined && { callback }),
    ...(failureCallback !== undefined && { failureCallback }),
    ...(retryDelay !== undefined && { retryDelayExpression: retryDelay }),
    ...(labels.length > 0 && { label: labels[0], labels }),
  }
}
