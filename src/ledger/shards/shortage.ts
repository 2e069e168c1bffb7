import type { Clock } from '../../lib/clock.ts'
import { withinTime } from '../../lib/time-limit.ts'
import {
  type CallColumns,
  type CommitAnswer,
  emptyRateLimits,
  type RateLimitColumns,
} from '../commits/commit.ts'
import type { AdmissionRefusal } from '../contract.ts'

/** Maximum number of times that a batch is decided again after credits came: other calls may have reserved them meanwhile. */
const MOST_DRAWS = 5
/** Total time that the calls of a batch wait for credits; well below the time that an isolate waits for a commit. */
const LONGEST_WAIT_MS = 4_000

/** The way a ledger gets credits for calls that it has too few for. */
interface Shortage {
  /** Micro-credits that are not reserved. */
  available(): number
  /** Brings credits of other shards here. @returns whether some came; it never rejects. */
  draw(least: number, all: number): Promise<boolean>
  /** Decides calls, and stores the result. */
  decide(calls: CallColumns): CommitAnswer
  clock: Clock
}

/**
 * Decides the calls of a batch again that were refused for lack of credits, as long as other shards of the organization have
 * some. Calls refused for another reason stay refused.
 */
export async function coverShortage(
  shortage: Shortage,
  calls: CallColumns,
  answer: CommitAnswer,
): Promise<CommitAnswer> {
  const until = shortage.clock() + LONGEST_WAIT_MS
  let covered = answer
  for (let round = 0; round < MOST_DRAWS; round += 1) {
    const short = covered.refused.flatMap(([, verdict]) => (verdict.kind === 'no_credits' ? [verdict] : []))
    if (short.length === 0 || !(await hasDrawn(shortage, short, until))) break
    covered = decideAgain(shortage.decide, calls, covered, 'no_credits')
  }
  return covered
}

/** Decides the calls of a batch again that were refused for one reason. Other refused calls stay refused. */
export function decideAgain(
  decide: Shortage['decide'],
  calls: CallColumns,
  answer: CommitAnswer,
  reason: AdmissionRefusal['kind'],
): CommitAnswer {
  const indices = answer.refused.flatMap(([index, { kind }]) => (kind === reason ? [index] : []))
  const again = decide(pick(calls, indices))
  const others = answer.refused.filter(([, { kind }]) => kind !== reason)
  const refused = again.refused.map(([at, verdict]): (typeof others)[number] => [
    indices[at] as number,
    verdict,
  ])
  const decided = { ...answer, refused: [...others, ...refused] }
  if (!again.rateLimits) return decided
  const size = calls.ids.length
  return { ...decided, rateLimits: merged(answer.rateLimits, again.rateLimits, indices, size) }
}

/** @param indices of the calls that were decided again. @param size calls of the batch. */
function merged(
  before: RateLimitColumns | undefined,
  again: RateLimitColumns,
  indices: readonly number[],
  size: number,
): RateLimitColumns {
  const { limits, remaining } = before ?? emptyRateLimits(size, again.resetsAt)
  for (const [at, index] of indices.entries()) {
    limits[index] = again.limits[at] as number
    remaining[index] = again.remaining[at] as number
  }
  return { limits, remaining, resetsAt: again.resetsAt }
}

/** @returns whether deciding again can have another result. */
async function hasDrawn(
  { available, draw, clock }: Shortage,
  short: ReadonlyArray<{ required: number }>,
  until: number,
): Promise<boolean> {
  const least = Math.min(...short.map(({ required }) => required)) - available()
  const all = short.reduce((sum, { required }) => sum + required, 0) - available()
  if (least <= 0) return true
  const left = until - clock()
  if (left <= 0) return false
  return withinTime(draw(least, all), left, 'drawing credits').catch(() => false)
}

/** Selects some of the calls by their indices. */
function pick(calls: CallColumns, indices: readonly number[]): CallColumns {
  const columns = Object.entries(calls).map(([name, column]) => [name, indices.map((index) => column[index])])
  return Object.fromEntries(columns) as CallColumns
}
