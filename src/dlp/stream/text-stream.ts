import { drained, type Slices } from '../../lib/slices.ts'
import { ScanBudget } from '../scan/scan-budget.ts'
import type { Action, Finding } from '../types.ts'

/** Finds what a profile names, in the texts of one direction. */
export interface TextDetector {
  /**
   * For a text that is still growing.
   * @param context the released text before it.
   * @returns the leading units that no more text can make part of another finding, and the findings within them, in
   * order, without overlaps.
   */
  tail(context: string, text: string, budget: ScanBudget): Slices<{ safe: number; spans: Finding[] }>
  /** The findings of a text, or of the rest of one, that is complete. */
  rest(context: string, text: string, budget: ScanBudget): Slices<Finding[]>
  /** Patterns and dictionaries that read each text as a whole. */
  passes: number
  actionOf(span: Finding): Action
}

/** The next units of a text, and the replacement that leaves in their place. */
export interface ReleasedText {
  units: number
  /** Null when the units pass as they are. */
  replacement: string | null
}

/** Replaces a finding. @returns null to let it pass. @throws ApiError `dlp_blocked` to end the call. */
export type ReplaceFinding = (span: Finding, found: string) => string | null

/** Released units that are kept, because words before a value raise its score. */
const CONTEXT_UNITS = 128
/**
 * A longer text that is held back, such as encoded data without a blank, is not scanned for every piece: the time would
 * grow with the square of its length. It is scanned when it has doubled, or when its end looks like ordinary text.
 */
const LONG_HELD_UNITS = 1024
/** Units at its end that show whether it has ended, and how many have to arrive before they are looked at again. */
const END_UNITS = 1024

/** Findings that are replaced in one slice. */
const FINDINGS_AT_ONCE = 1024

/** A text that arrives in pieces. The part that could still become a finding is held back. */
export class TextStream {
  readonly #detector: TextDetector
  readonly #replace: ReplaceFinding
  readonly #budget: ScanBudget
  #context: string
  #held = ''
  /** The last units that arrived: a slice of all that is held back would copy its pieces into one text. */
  #end = ''
  /** Units that have to be held back before they are scanned again. */
  #nextScan = 0
  /** Units at which the end is looked at; infinite once that was in vain, until the next scan. */
  #nextLook = Number.POSITIVE_INFINITY

  /** @param context text before the first piece, such as the name of the member. */
  constructor(
    detector: TextDetector,
    replace: ReplaceFinding,
    context = '',
    budget = new ScanBudget(Number.POSITIVE_INFINITY),
  ) {
    this.#detector = detector
    this.#replace = replace
    this.#context = context
    this.#budget = budget
  }

  /** Units that are held back. */
  get heldUnits(): number {
    return this.#held.length
  }

  /** @returns the units that can be released now, in order; the others are held back. */
  push(piece: string): ReleasedText[] {
    return drained(this.pushInSlices(piece))
  }

  *pushInSlices(piece: string): Slices<ReleasedText[]> {
    this.#held += piece
    this.#end = (this.#end + piece).slice(-END_UNITS)
    if (this.#held.length < this.#nextScan && !(yield* this.#hasEnded())) return []
    const scanned = this.#held.length
    const isEarly = scanned < this.#nextScan
    const { safe, spans } = yield* this.#detector.tail(this.#context, this.#held, this.#budget)
    const texts = yield* this.#release(safe, spans)
    const left = this.#held.length
    this.#nextScan = left < LONG_HELD_UNITS ? 0 : 2 * left
    // Scans are paid for by the units that they release, or by those that have doubled since.
    this.#nextLook = isEarly && 2 * left > scanned ? Number.POSITIVE_INFINITY : left + END_UNITS
    return texts
  }

  /** Whether the end of a long text that is held back could be released, were it all. */
  *#hasEnded(): Slices<boolean> {
    if (this.#held.length < this.#nextLook) return false
    this.#nextLook = this.#held.length + END_UNITS
    return (yield* this.#detector.tail('', this.#end, this.#budget)).safe > 0
  }

  /** Inspects a complete text. */
  whole(text: string): ReleasedText[] {
    return drained(this.wholeInSlices(text))
  }

  wholeInSlices(text: string): Slices<ReleasedText[]> {
    this.#held = text
    return this.endInSlices()
  }

  /** Ends the text. @returns everything that was held back. */
  end(): ReleasedText[] {
    return drained(this.endInSlices())
  }

  *endInSlices(): Slices<ReleasedText[]> {
    const spans = yield* this.#detector.rest(this.#context, this.#held, this.#budget)
    return yield* this.#release(this.#held.length, spans)
  }

  *#release(limit: number, spans: readonly Finding[]): Slices<ReleasedText[]> {
    const texts = yield* replaceFindings(this.#held, limit, spans, this.#replace)
    // Only the end of the released text is joined: joining all of it would copy it.
    const released = this.#held.slice(Math.max(0, limit - CONTEXT_UNITS), limit)
    this.#context = (this.#context + released).slice(-CONTEXT_UNITS)
    this.#held = this.#held.slice(limit)
    return texts
  }
}

/**
 * Replaces the findings of a text.
 * @param limit the end of the text that the released texts cover.
 * @param spans in order, without overlaps.
 */
export function* replaceFindings(
  text: string,
  limit: number,
  spans: readonly Finding[],
  replace: ReplaceFinding,
): Slices<ReleasedText[]> {
  const texts: ReleasedText[] = []
  let at = 0
  for (const [index, span] of spans.entries()) {
    if (index % FINDINGS_AT_ONCE === FINDINGS_AT_ONCE - 1) yield
    // A finding can begin in released text, then its rest is replaced.
    const start = Math.max(at, span.start)
    if (span.end <= start) continue
    const replacement = replace(span, text.slice(start, span.end))
    if (replacement === null) continue
    pushPassing(texts, start - at)
    texts.push({ units: span.end - start, replacement })
    at = span.end
  }
  pushPassing(texts, limit - at)
  return texts
}

function pushPassing(texts: ReleasedText[], units: number): void {
  if (units <= 0) return
  const last = texts[texts.length - 1]
  if (last?.replacement === null) last.units += units
  else texts.push({ units, replacement: null })
}

/** Whether everything passes as it is. */
export const isUnchanged = (texts: readonly ReleasedText[]): boolean =>
  texts.every(({ replacement }) => replacement === null)

/** The beginning of a text that released texts cover, with their replacements. */
export function applyReleased(text: string, texts: readonly ReleasedText[]): string {
  let at = 0
  let applied = ''
  for (const { units, replacement } of texts) {
    applied += replacement ?? text.slice(at, at + units)
    at += units
  }
  return applied
}
