import type { Action, Finding } from '../types.ts'

/** Finds what a profile names, in the texts of one direction. */
export interface TextDetector {
  /**
   * For a text that is still growing.
   * @param context the released text before it.
   * @returns the leading units that no more text can make part of another finding, and the findings within them, in
   * order, without overlaps.
   */
  tail(context: string, text: string): { safe: number; spans: Finding[] }
  /** The findings of a text, or of the rest of one, that is complete. */
  rest(context: string, text: string): Finding[]
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
 * A long text that is held back, such as encoded data without a blank, is not scanned again for every piece, because the
 * time would grow with the square of its length.
 */
const LONG_HELD_UNITS = 1024
const SCANS_PER_DOUBLING = 16

/** One text that arrives in pieces. The part that could still become a finding is held back. */
export class TextStream {
  readonly #detector: TextDetector
  readonly #replace: ReplaceFinding
  #context: string
  #held = ''
  /** Units that have to be held back before they are scanned again. */
  #nextScan = 0

  /** @param context text before the first piece, such as the name of the member. */
  constructor(detector: TextDetector, replace: ReplaceFinding, context = '') {
    this.#detector = detector
    this.#replace = replace
    this.#context = context
  }

  /** Units that are held back. */
  get heldUnits(): number {
    return this.#held.length
  }

  /** @returns the units that can be released now, in order; the others are held back. */
  push(piece: string): ReleasedText[] {
    this.#held += piece
    if (this.#held.length < this.#nextScan) return []
    const { safe, spans } = this.#detector.tail(this.#context, this.#held)
    const segments = this.#release(safe, spans)
    this.#nextScan =
      this.#held.length < LONG_HELD_UNITS ? 0 : this.#held.length + this.#held.length / SCANS_PER_DOUBLING
    return segments
  }

  /** Inspects a complete text. */
  whole(text: string): ReleasedText[] {
    this.#held = text
    return this.end()
  }

  /** Ends the text. @returns everything that was held back. */
  end(): ReleasedText[] {
    return this.#release(this.#held.length, this.#detector.rest(this.#context, this.#held))
  }

  #release(limit: number, spans: readonly Finding[]): ReleasedText[] {
    const segments: ReleasedText[] = []
    let at = 0
    for (const span of spans) {
      // A finding can begin in released text, then its rest is replaced.
      const start = Math.max(at, span.start)
      if (span.end <= start) continue
      const replacement = this.#replace(span, this.#held.slice(start, span.end))
      if (replacement === null) continue
      pushPassing(segments, start - at)
      segments.push({ units: span.end - start, replacement })
      at = span.end
    }
    pushPassing(segments, limit - at)
    this.#context = (this.#context + this.#held.slice(0, limit)).slice(-CONTEXT_UNITS)
    this.#held = this.#held.slice(limit)
    return segments
  }
}

function pushPassing(segments: ReleasedText[], units: number): void {
  if (units <= 0) return
  const last = segments[segments.length - 1]
  if (last?.replacement === null) last.units += units
  else segments.push({ units, replacement: null })
}

/** Whether everything passes as it is. */
export const isUnchanged = (segments: readonly ReleasedText[]): boolean =>
  segments.every(({ replacement }) => replacement === null)

/** The beginning of a text that segments cover, with their replacements. */
export function applySegments(text: string, segments: readonly ReleasedText[]): string {
  let at = 0
  let applied = ''
  for (const { units, replacement } of segments) {
    applied += replacement ?? text.slice(at, at + units)
    at += units
  }
  return applied
}
