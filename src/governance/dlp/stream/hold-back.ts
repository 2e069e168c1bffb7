import { findingsIn } from '../scan/detect.ts'
import { OPEN_ESCAPE } from '../scan/escapes.ts'
import { originalStart, type Reading, readings } from '../scan/normalise.ts'
import { type Plan, planFor } from '../scan/plan.ts'
import { resolveOverlaps } from '../scan/resolve.ts'
import type { Finding, Profile } from '../types.ts'
import { holdBackStart } from './stream-window.ts'

/** What a stream may do with the text it holds. */
export interface HoldBack {
  /** So many leading units can be released. */
  safe: number
  /** The findings that end within them; those of the rest may still change. */
  spans: Finding[]
}

/**
 * Tells how much of a text that is still growing can no longer become part of a match, whatever follows.
 * @param context what has been released, of which the last 128 units are looked at
 * @param text what has not been released yet
 * @returns leading UTF-16 units of `text`; 0 while a custom pattern without bound is asked for
 */
export function safeLength(context: string, text: string, profile: Profile): number {
  return holdBack(context, text, profile).safe
}

const LONGEST_CONTEXT = 128
const LONGEST_ESCAPE_TAIL = 64

/** `safeLength`, and the findings in what it declares safe, for the price of one. */
export function holdBack(context: string, text: string, profile: Profile): HoldBack {
  const plan = planFor(profile)
  if (plan.empty || text === '') return { safe: text.length, spans: [] }
  if (hasUnboundedPattern(plan)) return { safe: 0, spans: [] }
  const before = context.slice(-LONGEST_CONTEXT)
  const whole = before + text
  const all = readings(whole)
  const found = findingsIn(whole, before.length, plan, all)
  const safe = Math.max(before.length, beforeFindings(openFrom(whole, plan, all), found))
  const spans = resolveOverlaps(
    found.filter(({ end }) => end <= safe),
    plan,
  )
  const shifted = spans.map((span) => ({
    ...span,
    start: span.start - before.length,
    end: span.end - before.length,
  }))
  return { safe: safe - before.length, spans: shifted }
}

const hasUnboundedPattern = (plan: Plan): boolean =>
  plan.custom.some((custom) => custom.kind === 'pattern' && custom.pattern.longest === null)

/** The first unit of the text that more text can make part of a match. */
function openFrom(whole: string, plan: Plan, all: readonly Reading[]): number {
  let open = openInReadings(whole, plan, all)
  const tail = whole.slice(-LONGEST_ESCAPE_TAIL)
  const broken = OPEN_ESCAPE.exec(tail)
  if (broken !== null && broken[0].length > 0) {
    // What the broken-off escape will stand for is unknown: it may continue what is before it.
    const cut = whole.slice(0, whole.length - broken[0].length)
    open = Math.min(open, cut.length, openInReadings(cut, plan, readings(cut)))
  }
  return open
}

function openInReadings(whole: string, plan: Plan, all: readonly Reading[]): number {
  let open = whole.length
  for (const reading of all)
    open = Math.min(open, originalStart(reading, holdBackStart(reading.text, plan), whole.length))
  return open
}

/** Moves a boundary before every finding that it would cut. */
function beforeFindings(boundary: number, found: readonly Finding[]): number {
  let safe = boundary
  const crossing = [...found].sort((left, right) => right.end - left.end)
  for (let moved = true; moved; ) {
    moved = false
    for (const { start, end } of crossing) {
      if (end <= safe || start >= safe) continue
      safe = start
      moved = true
    }
  }
  return safe
}
