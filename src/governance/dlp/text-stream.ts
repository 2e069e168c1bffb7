import type { Action, Span } from './types.ts'

/** What a profile finds in a text; compiled once, used for every text of a direction. */
export interface TextDetector {
  /**
   * Of a text that is still growing: how many leading units can no longer become part of a finding that is not known
   * yet, whatever follows, and the findings within them, in order, without overlaps.
   * @param context what stood before, already released.
   */
  tail(context: string, text: string): { safe: number; spans: Span[] }
  /** The findings of a text that grows no more. */
  rest(context: string, text: string): Span[]
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
    const { safe, spans } = this.#detector.tail(this.#context, this.#held)
    return this.#release(safe, spans)
  }

  /** A text that is there at once. */
  whole(text: string): Segment[] {
    this.#held = text
    return this.end()
  }

  /** The text is over: everything that was held is decided. */
  end(): Segment[] {
    return this.#release(this.#held.length, this.#detector.rest(this.#context, this.#held))
  }

  #release(limit: number, spans: readonly Span[]): Segment[] {
    const segments: Segment[] = []
    let at = 0
    for (const span of spans) {
      // What is known by what was released is about the part that was not.
      const start = Math.max(at, span.start)
      if (span.end <= start) continue
      const replacement = this.#verdict(span, this.#held.slice(start, span.end))
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

function pushPassing(segments: Segment[], units: number): void {
  if (units <= 0) return
  const last = segments[segments.length - 1]
  if (last?.replacement === null) last.units += units
  else segments.push({ units, replacement: null })
}
