import type { Action, Finding } from '../types.ts'

/** What a profile finds in a text; compiled once, used for every text of a direction. */
export interface TextDetector {
  /**
   * Of a text that is still growing: how many leading units can no longer become part of a finding that is not known
   * yet, whatever follows, and the findings within them, in order, without overlaps.
   * @param context what stood before, already released.
   */
  tail(context: string, text: string): { safe: number; spans: Finding[] }
  /** The findings of a text that grows no more. */
  rest(context: string, text: string): Finding[]
  actionOf(span: Finding): Action
}

/** What happens to the next units of a text: they pass, or something stands in their place. */
export interface ReleasedText {
  units: number
  /** Null when the units pass as they are. */
  replacement: string | null
}

/** Decides what a finding becomes. @returns null to let it pass. @throws to stop the call. */
export type ReplaceFinding = (span: Finding, found: string) => string | null

/** What was released is remembered so far, for the words that tell a finding by what stands before it. */
const CONTEXT_UNITS = 128
/**
 * A long text that is held, such as encoded data without a blank, is not looked at anew for every piece: the time would
 * grow with the square of its length.
 */
const LONG_HELD_UNITS = 1024
const LOOKS_PER_DOUBLING = 16

/** One text that arrives in pieces. What could still become part of a finding is held back. */
export class TextStream {
  readonly #detector: TextDetector
  readonly #verdict: ReplaceFinding
  #context: string
  #held = ''
  /** How much has to be held before it is looked at again. */
  #worthLooking = 0

  /** @param context what stands before the text, as far as it says what the text is. */
  constructor(detector: TextDetector, verdict: ReplaceFinding, context = '') {
    this.#detector = detector
    this.#verdict = verdict
    this.#context = context
  }

  /** Units that arrived and have not been decided about. */
  get heldUnits(): number {
    return this.#held.length
  }

  /** @returns what becomes of the units that are decided now, in order; the others are held. */
  push(piece: string): ReleasedText[] {
    this.#held += piece
    if (this.#held.length < this.#worthLooking) return []
    const { safe, spans } = this.#detector.tail(this.#context, this.#held)
    const segments = this.#release(safe, spans)
    this.#worthLooking =
      this.#held.length < LONG_HELD_UNITS ? 0 : this.#held.length + this.#held.length / LOOKS_PER_DOUBLING
    return segments
  }

  /** A text that is there at once. */
  whole(text: string): ReleasedText[] {
    this.#held = text
    return this.end()
  }

  /** The text is over: everything that was held is decided. */
  end(): ReleasedText[] {
    return this.#release(this.#held.length, this.#detector.rest(this.#context, this.#held))
  }

  #release(limit: number, spans: readonly Finding[]): ReleasedText[] {
    const segments: ReleasedText[] = []
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

function pushPassing(segments: ReleasedText[], units: number): void {
  if (units <= 0) return
  const last = segments[segments.length - 1]
  if (last?.replacement === null) last.units += units
  else segments.push({ units, replacement: null })
}
