import { type Slices, sortedInSlices } from '../../../lib/slices.ts'
import { ACTIONS } from '../../../wire/dlp.ts'
import type { Finding } from '../types.ts'
import { categoryOf, type Plan } from './plan.ts'

/** The first action that changes the text. */
const EDITS = ACTIONS.indexOf('mask')

/**
 * Resolves overlaps: the finding with the most severe action stays, then the one with the higher score, then the longer.
 * Of a losing secret or custom finding, the parts outside of the winner stay findings, since nothing of it may get out.
 */
export function* resolveOverlaps(spans: readonly Finding[], plan: Plan): Slices<Finding[]> {
  const sorted = yield* sortedInSlices(
    spans,
    (left, right) => left.start - right.start || right.end - left.end,
  )
  const resolved: Finding[] = []
  for (let index = 0; index < sorted.length; ) {
    let reach = sorted[index]?.end ?? 0
    let stop = index + 1
    for (let next = sorted[stop]; next !== undefined && next.start < reach; next = sorted[++stop]) {
      reach = Math.max(reach, next.end)
    }
    if (stop === index + 1) resolved.push(sorted[index] as Finding)
    else for (const span of yield* resolveCluster(sorted.slice(index, stop), plan)) resolved.push(span)
    if (Math.floor(index / FINDINGS_AT_ONCE) < Math.floor(stop / FINDINGS_AT_ONCE)) yield
    index = stop
  }
  return resolved
}

/** Findings that are resolved in one slice. */
const FINDINGS_AT_ONCE = 4096

function* resolveCluster(cluster: readonly Finding[], plan: Plan): Slices<Finding[]> {
  const severity = (span: Finding): number => severityOf(span, plan)
  const ranked = yield* sortedInSlices(
    cluster,
    (left, right) =>
      severity(right) - severity(left) ||
      right.score - left.score ||
      right.end - right.start - (left.end - left.start) ||
      left.start - right.start ||
      (left.detector < right.detector ? -1 : 1),
  )
  const taken: Finding[] = []
  let moved = 0
  for (const [index, span] of ranked.entries()) {
    if (index % FINDINGS_AT_ONCE === FINDINGS_AT_ONCE - 1 || moved > MOVED_AT_ONCE) {
      moved = 0
      yield
    }
    const at = indexFor(taken, span.start)
    const overlaps = (taken[at - 1]?.end ?? 0) > span.start || (taken[at]?.start ?? Infinity) < span.end
    if (!overlaps) taken.splice(at, 0, span)
    else if (severity(span) >= EDITS && keepsRest(span)) takeRest(taken, at, span)
    else continue
    moved += taken.length - at
  }
  return taken
}

/** Findings that insertions before them move in one slice. */
const MOVED_AT_ONCE = 1_000_000

/** The rank of the most severe action whose minimum score a finding reaches. */
function severityOf({ detector, score }: Finding, plan: Plan): number {
  let rank = 0
  for (const rule of plan.severity.get(detector) ?? []) {
    if (score >= rule.minimumScore) rank = Math.max(rank, rule.rank)
  }
  return rank
}

const keepsRest = ({ detector }: Finding): boolean => {
  const category = categoryOf(detector)
  return category === 'custom' || category === 'secret'
}

/** The index in the taken findings of one that starts at `start`. */
function indexFor(taken: readonly Finding[], start: number): number {
  let low = 0
  let high = taken.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((taken[middle]?.start ?? 0) < start) low = middle + 1
    else high = middle
  }
  return low
}

/** Takes the parts of a span that no taken one covers. @param at where it would stand in the order. */
function takeRest(taken: Finding[], at: number, span: Finding): void {
  const first = Math.max(0, at - 1)
  const within: Finding[] = []
  let { start } = span
  let index = first
  while (start < span.end) {
    const next = taken[index]
    const end = Math.min(span.end, next?.start ?? Infinity)
    if (end > start) within.push({ ...span, start, end })
    if (next === undefined) break
    within.push(next)
    start = Math.max(start, next.end)
    index++
  }
  // All at once: each insertion moves what is after it.
  if (within.length < SPREAD_AT_MOST) taken.splice(first, index - first, ...within)
  else {
    const after = taken.splice(first).slice(index - first)
    for (const part of within) taken.push(part)
    for (const part of after) taken.push(part)
  }
}

const SPREAD_AT_MOST = 1024
