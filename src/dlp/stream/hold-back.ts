import { type Slices, sortedInSlices } from '../../lib/slices.ts'
import { findingsIn, shifted } from '../scan/detect.ts'
import { OPEN_ESCAPE } from '../scan/escapes.ts'
import { readings } from '../scan/normalise.ts'
import { type Plan, planFor } from '../scan/plan.ts'
import { originalStart, type Reading } from '../scan/reading.ts'
import { resolveOverlaps } from '../scan/resolve.ts'
import { ScanBudget } from '../scan/scan-budget.ts'
import type { Finding, Profile } from '../types.ts'
import { holdBackStart } from './stream-window.ts'

/** The part of a growing text that a stream can release. */
interface HoldBack {
  /** Leading units that no more text can make part of another finding. */
  safe: number
  /** The findings within them; those of the rest may still change. */
  spans: Finding[]
}

const LONGEST_CONTEXT = 128
const LONGEST_ESCAPE_TAIL = 64

/**
 * Finds how much of a growing text can be released, whatever follows, and the findings in that part.
 * @param context the released text before it, of which the last 128 units are read
 * @param text what has not been released yet; all of it is held back for a custom pattern of unbounded length
 */
export function* holdBack(
  context: string,
  text: string,
  profile: Profile,
  budget = new ScanBudget(Number.POSITIVE_INFINITY),
): Slices<HoldBack> {
  const plan = planFor(profile)
  if (plan.empty || text === '') return { safe: text.length, spans: [] }
  if (hasUnboundedPattern(plan)) return { safe: 0, spans: [] }
  const before = context.slice(-LONGEST_CONTEXT)
  const whole = before + text
  const all = yield* readings(whole, budget)
  const found = yield* findingsIn(whole, before.length, plan, all, budget)
  const open = yield* openFrom(whole, plan, all, budget)
  const safe = Math.max(before.length, yield* beforeFindings(open, found))
  const spans = yield* resolveOverlaps(
    found.filter(({ end }) => end <= safe),
    plan,
  )
  return { safe: safe - before.length, spans: shifted(spans, -before.length) }
}

const hasUnboundedPattern = (plan: Plan): boolean =>
  plan.custom.some((custom) => custom.kind === 'pattern' && custom.pattern.longest === null)

/** The first unit that more text can make part of a match. */
function* openFrom(whole: string, plan: Plan, all: readonly Reading[], budget: ScanBudget): Slices<number> {
  let open = yield* openInReadings(whole, plan, all)
  const tail = whole.slice(-LONGEST_ESCAPE_TAIL)
  const openEscape = OPEN_ESCAPE.exec(tail)
  if (openEscape !== null && openEscape[0].length > 0) {
    // The incomplete escape may become any character and continue what is before it.
    const cut = whole.slice(0, whole.length - openEscape[0].length)
    open = Math.min(open, cut.length, yield* openInReadings(cut, plan, yield* readings(cut, budget)))
  }
  return open
}

function* openInReadings(whole: string, plan: Plan, all: readonly Reading[]): Slices<number> {
  let open = whole.length
  for (const reading of all) {
    const start = yield* holdBackStart(reading.text, plan)
    open = Math.min(open, originalStart(reading, start, whole.length))
  }
  return open
}

/** Moves a boundary before every finding that it would cut. */
export function* beforeFindings(boundary: number, found: readonly Finding[]): Slices<number> {
  let safe = boundary
  // The latest end first: where one finding moves the boundary, only those that end earlier can move it again.
  for (const { start, end } of yield* sortedInSlices(found, (left, right) => right.end - left.end)) {
    if (start < safe && end > safe) safe = start
  }
  return safe
}
