import { BoundedMap } from '../../lib/bounded-map.ts'
import type { CallOpening, CallOutcome } from '../audit-record.ts'

/** Refusals of one key for one reason in a minute that have records of their own, with address and path. */
const SINGLE_RECORDS = 5
/**
 * Time for which further refusals are gathered: first this time, then each time twice as long, up to the longest. Gathered
 * refusals are lost with the isolate.
 */
const FIRST_GATHERING_MS = 1_000
const LONGEST_GATHERING_MS = 8_000
const MINUTE_MS = 60_000

/** Refusals that get one record together. */
export interface GatheredRefusals {
  /** Opening of the first call. */
  opening: CallOpening
  outcome: CallOutcome
  count: number
  /** When they are recorded, in milliseconds since the epoch. */
  until: number
}

interface Repeated {
  single: number
  gathered: GatheredRefusals | null
  /** Time for which the next calls are gathered. */
  gatheringMs: number
}

/**
 * Calls of one ledger that this isolate refused before their admission, by key, minute and reason. No limit counts such calls, so
 * without this a flood of them would be a flood of records. The state is plain data: requests share it.
 */
export class RepeatedRefusals {
  readonly #byReason = new BoundedMap<string, Repeated>(10_000)

  /**
   * Notes a refused call.
   * @returns null when it gets a record of its own; else the refusals that it was gathered with. The call with which
   * gathering began, of count 1, has to record them.
   */
  note(opening: CallOpening, outcome: CallOutcome, now: number): GatheredRefusals | null {
    const minute = now - (now % MINUTE_MS)
    const { userId, keyId } = opening.actor
    const name = JSON.stringify([minute, keyId ?? userId, outcome.status, outcome.errorCode])
    const repeated = this.#byReason.get(name) ?? {
      single: 0,
      gathered: null,
      gatheringMs: FIRST_GATHERING_MS,
    }
    this.#byReason.set(name, repeated)
    if (repeated.single < SINGLE_RECORDS) {
      repeated.single += 1
      return null
    }
    if (repeated.gathered && now < repeated.gathered.until) repeated.gathered.count += 1
    else {
      const until = Math.min(minute + MINUTE_MS, now + repeated.gatheringMs)
      repeated.gathered = { opening, outcome, count: 1, until }
      repeated.gatheringMs = Math.min(2 * repeated.gatheringMs, LONGEST_GATHERING_MS)
    }
    return repeated.gathered
  }
}

/**
 * Whether repeated calls with this outcome are gathered. Failures of the gateway are recorded one by one: their record can close
 * a call.
 */
export const isRepeatable = ({ status, cost }: CallOutcome): boolean =>
  status >= 400 && status < 500 && cost === 0

/** The outcome of gathered refusals. No call is added to them afterwards. */
export function gatheredOutcome(gathered: GatheredRefusals): CallOutcome {
  gathered.until = 0
  return { ...gathered.outcome, count: gathered.count }
}
