import * as z from 'zod'
import { runStatus } from '../../agents.ts'
import { OUTCOMES, type Outcome } from '../../calls.ts'
import { uuid } from '../../management-fields.ts'
import { count, credits, list, time } from './parts.ts'
import { auditRecord } from './records.ts'

/** Schemas of the endpoints for calls. Amounts are micro-credits. */

/** A call at its admission. */
const openCall = z
  .strictObject({
    id: z.string(),
    at: time,
    request_id: z.string(),
    user_id: z.string().nullable(),
    key_id: z.string().nullable(),
    surface: z.string(),
    action: z.string(),
    model: z.string().nullable(),
    tool: z.string().nullable(),
    response_id: z.string().nullable(),
    run_id: z.string().nullable(),
  })
  .meta({ id: 'OpenCall' })

const call = openCall
  .extend({
    connection_id: z.string().nullable(),
    provider: z.string().nullable(),
    /** 0 where the answer is unknown. */
    status: z.int(),
    error: z.string().nullable(),
    outcome: z.enum(OUTCOMES),
    flags: z.array(z.string()),
    /** Detectors with findings. */
    found: z.array(z.string()),
    duration_ms: z.int(),
    /** From the beginning of the call to the first event of a stream. */
    first_event_ms: z.int().nullable(),
    input_tokens: count,
    output_tokens: count,
    cost: credits,
    /** Refused calls that the row stands for. */
    count,
  })
  .meta({ id: 'Call' })

/** `data` of the events `calls` and `end` of a stream of live calls. */
const liveCalls = z.union([
  z.strictObject({ opened: z.array(openCall), closed: z.array(call), skipped: z.boolean() }),
  z.strictObject({ reason: z.enum(['time', 'rights']) }),
])

/** Calls by how they ended, and what they cost. */
const outcomeCounts = {
  ...(Object.fromEntries(OUTCOMES.map((outcome) => [outcome, count])) as Record<Outcome, typeof count>),
  cost: credits,
}

/** Time to the first event of streams; null without any. */
const firstEventTimes = z.strictObject({ p50: count, p95: count }).nullable()

const histogramBucket = z.strictObject({ at: time, ...outcomeCounts })

const histogram = z
  .strictObject({
    from: time,
    to: time,
    bucket_ms: count,
    data: z.array(histogramBucket),
    first_event_ms: firstEventTimes,
    /** Time from which on the counts are whole: later than `from` where the newest 100,000 calls were counted. */
    complete_from: time,
  })
  .meta({ id: 'CallHistogram' })

const overview = z
  .strictObject({
    at: time,
    today: z.strictObject({ from: time, ...outcomeCounts, first_event_ms: firstEventTimes }),
    /** Calls of the same part of the day a week before. */
    week_before: count,
    /** The last 24 hours, each with the median time to the first event. */
    hours: z.array(histogramBucket.extend({ first_event_ms: count.nullable() })),
    /** The provider of the most failed calls of today. */
    failed_at: z.strictObject({ provider: z.string(), count }).nullable(),
    /** The user with the most refused calls of today. */
    refused_to: z.strictObject({ user_id: z.string(), count }).nullable(),
    /** What the most blocked calls of today had, at most three. */
    blocked_by: z.array(z.strictObject({ detector: z.string(), count })),
    /** The users that have spent the most today. */
    spend: z.array(z.strictObject({ user_id: z.string().nullable(), calls: count, cost: credits })),
    /** All other users together. */
    others: z.strictObject({ users: count, calls: count, cost: credits }),
    /** The latest calls of 24 hours that were refused, blocked or failed, at most six. */
    latest_errors: z.array(call),
    /** The latest runs of the last hour, at most six; null for those who may not read runs. */
    runs: z
      .array(
        z.strictObject({
          id: uuid,
          agent_id: uuid,
          agent: z.string(),
          status: runStatus,
          step: count,
          created_at: time,
          ended_at: time.nullable(),
        }),
      )
      .nullable(),
    complete_from: time,
  })
  .meta({ id: 'Overview' })

export const callAnswers = {
  'overview.show': overview,
  'calls.list': list(call),
  'calls.histogram': histogram,
  'calls.tail': liveCalls,
  'calls.show': call.extend({ record: auditRecord }),
}
