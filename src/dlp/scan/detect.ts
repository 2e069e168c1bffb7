import { drained, type Slices } from '../../lib/slices.ts'
import type { Finding, Profile } from '../types.ts'
import { readings } from './normalise.ts'
import { categoryOf, type Plan, planFor } from './plan.ts'
import { identity, originalEnd, originalStart, type Reading, readingIndex } from './reading.ts'
import { resolveOverlaps } from './resolve.ts'
import { type Report, scanReading } from './scan.ts'
import { ScanBudget } from './scan-budget.ts'
import { scanCustom } from './scan-custom.ts'

const unlimited = () => new ScanBudget(Number.POSITIVE_INFINITY)

/**
 * Finds the values that a profile has rules for, in a whole text.
 * @returns spans in UTF-16 units of the text, in order, none overlapping another
 * @throws PatternError if a custom pattern of the profile does not compile
 */
export function detect(text: string, profile: Profile): Finding[] {
  return drained(detectAfter('', text, profile))
}

/**
 * Finds the values that a profile has rules for, in a text that follows another.
 * @param context the text before it, already released; its last 128 units suffice
 * @returns spans in UTF-16 units of `text` that start in it
 */
export function* detectAfter(
  context: string,
  text: string,
  profile: Profile,
  budget = unlimited(),
): Slices<Finding[]> {
  const plan = planFor(profile)
  if (plan.empty || text === '') return []
  const whole = context + text
  const all = yield* readings(whole, budget)
  const found = yield* findingsIn(whole, context.length, plan, all, budget)
  return shifted(yield* resolveOverlaps(found, plan), -context.length)
}

/** All findings of the readings that start at `from` or later, overlapping ones included, in units of the whole. */
export function* findingsIn(
  whole: string,
  from: number,
  plan: Plan,
  all: readonly Reading[],
  budget: ScanBudget,
): Slices<Finding[]> {
  const spans: Finding[] = []
  for (const reading of all) {
    const report = reporter(reading, whole.length, from, plan, spans, budget)
    if (plan.builtIn) yield* scanReading(reading, plan, 0, report, budget)
    if (plan.custom.length > 0) {
      yield* scanCustom(reading.text, plan, readingIndex(reading, from), report, budget)
    }
  }
  if (plan.custom.length > 0 && all[0]?.starts != null) {
    // A custom pattern may be written for the text as it is, without normalisation.
    const report = reporter(identity(whole), whole.length, from, plan, spans, budget)
    yield* scanCustom(whole, plan, from, report, budget)
  }
  return spans
}

function reporter(
  reading: Reading,
  length: number,
  from: number,
  plan: Plan,
  spans: Finding[],
  budget: ScanBudget,
): Report {
  return (detector, first, last, score) => {
    if (score < (plan.minimum.get(detector) ?? 2)) return
    const start = originalStart(reading, first, length)
    if (start < from) return
    const end = originalEnd(reading, last)
    spans.push({ start, end, detector, category: categoryOf(detector), score: Math.min(1, score) })
    budget.checkFindings(spans.length)
  }
}

/** Moves findings that nothing else refers to. */
export function shifted(spans: Finding[], by: number): Finding[] {
  if (by === 0) return spans
  for (const span of spans) {
    span.start += by
    span.end += by
  }
  return spans
}
