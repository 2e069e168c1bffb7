import { type Slices, sortedInSlices } from '../../lib/slices.ts'
import { ACTIONS } from '../../wire/dlp.ts'
import type { Finding } from '../types.ts'
import { categoryOf, type Plan } from './plan.ts'
import { TakenFindings } from './taken-findings.ts'

/** The first action that changes the text. */
const EDITS = ACTIONS.indexOf('mask')

/**
 * Resolves overlaps: the finding with the most severe action stays, then the one with the higher score, then the
 * longer. If a secret or custom finding loses, its parts outside of the winner stay findings, because no part of it may
 * be released.
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
  const taken = new TakenFindings()
  let steps = 0
  for (const span of ranked) {
    const isFree = !taken.overlaps(span)
    const parts = isFree ? [span] : severity(span) >= EDITS && keepsRest(span) ? restOf(span, taken) : []
    for (const part of parts) {
      taken.add(part)
      if (++steps % FINDINGS_AT_ONCE === 0) yield
    }
    if (++steps % FINDINGS_AT_ONCE === 0) yield
  }
  return taken.all()
}

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

/** The parts of a span that no taken finding covers. */
function restOf(span: Finding, taken: TakenFindings): Finding[] {
  const rest: Finding[] = []
  let { start } = span
  for (const next of taken.endingAfter(start)) {
    if (next.start >= span.end) break
    if (next.start > start) rest.push({ ...span, start, end: next.start })
    start = next.end
  }
  if (start < span.end) rest.push({ ...span, start, end: span.end })
  return rest
}
