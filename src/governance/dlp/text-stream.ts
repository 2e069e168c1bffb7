import type { Action, Span } from './types.ts'

/** What a profile finds in a text; compiled once, used for every text of a direction. */
export interface TextDetector {
  /** Findings, in order, without overlaps. */
  detect(text: string): Span[]
  /**
   * How many leading units of `text` can no longer become part of a finding that is not known yet, whatever follows.
   * @param context what stood before, already released.
   */
  safeLength(context: string, text: string): number
  actionOf(span: Span): Action
}

/** What happens to the next units of a text: they pass, or something stands in their place. */
export interface Segment {
  units: number
  /** Null when the units pass as they are. */
  replacement: string | null
}

/** Decides what a finding becomes. @returns null to let it pass. @throws to stop the call. */
export type Verdict = (span: Span, found: string) => string | null

/** What was released is remembered so far, for the words that tell a finding by what stands before it. */
const CONTEXT_UNITS = 128

/** One text that arrives in pieces. What could still become part of a finding is held back. */
export class TextStream {
  readonly #detector: TextDetector
  readonly #verdict: Verdict
  #context = ''
  #held = ''

  constructor(detector: TextDetector, verdict: Verdict) {
    this.#detector = detector
    this.#verdict = verdict
  }

  /** Units that arrived and have not been decided about. */
  get heldUnits(): number {
    return this.#held.length
  }

  /** @returns what becomes of the units that are decided now, in order; the others are held. */
  push(piece: string): Segment[] {
    this.#held += piece
    return this.#release(this.#detector.safeLength(this.#context, this.#held))
  }

  /** A text that is there at once. */
  whole(text: string): Segment[] {
    this.#held = text
    return this.end()
  }

  /** The text is over: everything that was held is decided. */
  end(): Segment[] {
    return this.#release(this.#held.length)
  }

  #release(limit: number): Segment[] {
    if (limit === 0) return []
    const offset = this.#context.length
    const segments: Segment[] = []
    let at = 0
    for (const span of this.#detector.detect(this.#context + this.#held)) {
      const start = Math.max(0, span.start - offset)
      const end = span.end - offset
      if (end <= at || start >= limit) continue
      if (end > limit) {
        // It may still grow: the text before it goes, it stays whole.
        return this.#take(segments, at, Math.min(start, limit))
      }
      const replacement = this.#verdict(span, this.#held.slice(start, end))
      if (replacement === null) continue
      pushPassing(segments, start - at)
      segments.push({ units: end - start, replacement })
      at = end
    }
    return this.#take(segments, at, limit)
  }

  #take(segments: Segment[], at: number, limit: number): Segment[] {
    pushPassing(segments, limit - at)
    const released = Math.max(at, limit)
    this.#context = (this.#context + this.#held.slice(0, released)).slice(-CONTEXT_UNITS)
    this.#held = this.#held.slice(released)
    return segments
  }
}

function pushPassing(segments: Segment[], units: number): void {
  if (units <= 0) return
  const last = segments[segments.length - 1]
  if (last?.replacement === null) last.units += units
  else segments.push({ units, replacement: null })
}
