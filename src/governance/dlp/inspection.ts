import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { JsonPath } from '../../lib/json-scan.ts'
import type { InspectionCounts } from '../audit-record.ts'
import type { Direction } from './types.ts'

/**
 * The seam between the wire and data-loss prevention. A protocol's visitor shows every inspectable string to an
 * inspection, which may answer with a replacement; everything else is counted as uninspected. What reaches the
 * other side is counted by the sink, apart from this, so that a byte that slipped past shows as a difference
 * (design: Governance, DLP).
 */

/** One string a protocol offers: where it stands in its message, and whether it is a piece of a longer text. */
export interface TextField {
  /** Member names and indexes from the root, the same for all pieces of one text. Live: copy it to keep it. */
  path: JsonPath
  /** True when more pieces of the same text can follow. */
  partial: boolean
  /** What the text is; where it is not said, what the engine was made for. */
  kind?: Direction
  /** Whether the text is JSON by itself, as arguments of a tool are. */
  json?: boolean
  /** Names the text that a piece belongs to, for all of its pieces. */
  key?: string
  /** The member that the text is the value of, where it says what the text is. */
  name?: string
  /** Its author signed it, so that it is changed only where it must be: a value does not come back for its token. */
  signed?: boolean
  /** It is told byte for byte or not at all: what is found can block the call and is counted, but nothing is changed. */
  fixed?: boolean
  /** The text is there as base64, or as a data URL of it (`isEncodedText`). */
  encoded?: boolean
}

/** What stands in the place of a string. */
export interface Replacement {
  /** In source form, as contents of a JSON string. */
  contents: Uint8Array
  /** Source bytes that pass with it, also those of earlier pieces that were held back. */
  released: number
  /** Source bytes that will never pass, also of earlier pieces. */
  withheld: number
}

/** The end of a text that was held back. */
export interface HeldText extends Replacement {
  key: string
}

/** Decides about texts. Pure: no I/O. One instance serves one direction of one call. */
export interface TextEngine {
  policyVersion: string
  /** Nothing is ever found: texts need not even be read. */
  passive?: boolean
  /**
   * @param contents a JSON string's contents in source form (escapes untouched).
   * @returns what to send in its place, or null to leave it. Bytes alone stand for all of the string.
   * @throws ApiError `dlp_blocked` for what must not pass.
   */
  inspect(field: TextField, contents: Uint8Array): Replacement | Uint8Array | null
  /** Ends the texts whose keys begin with this. @returns those of which something was held back. */
  end?(prefix: string): HeldText[]
  /** Source bytes that are held back now. */
  held?(): number
  /** Forgets all texts: what is held back of them will never be told. */
  drop?(): void
  /** Told of content that it cannot read. @throws ApiError `dlp_blocked` where such content must not pass. */
  uninspectable?(kind: Direction): void
  findings(): Record<string, number>
}

/** An engine without a policy: every text passes. */
export const passAllEngine: TextEngine = {
  policyVersion: 'none',
  passive: true,
  inspect: () => null,
  findings: () => ({}),
}

/** Counts what an engine sees of one direction, and what the sink lets out. */
export class Inspection {
  readonly engine: TextEngine
  readonly counts: InspectionCounts = { inspected: 0, uninspected: 0, released: 0, withheld: 0 }
  #unit = 0
  #unitEnded = true
  /** Source bytes of earlier units that were held back when the current one began. */
  #heldBefore = 0

  constructor(engine: TextEngine) {
    this.engine = engine
  }

  /** Begins a unit (a body, a frame). */
  begin(): void {
    this.#heldBefore = this.engine.held?.() ?? 0
    this.#unitEnded = false
  }

  /** Shows a string of the current unit to the engine. @returns the edit it asks for. */
  text(field: TextField, source: Uint8Array, start: number, end: number): ByteEdit | null {
    this.count(end - start)
    const replacement = this.engine.inspect(field, source.subarray(start, end))
    if (!replacement) return null
    if (replacement instanceof Uint8Array) return { start, end, replacement }
    const { contents, released, withheld } = replacement
    return { start, end, replacement: contents, released, withheld }
  }

  /** Counts texts of the current unit that need not be shown to an engine which never finds anything. */
  count(bytes: number): void {
    this.counts.inspected += bytes
    this.#unit += bytes
  }

  /** Ends texts of a stream. @returns what was held back of them, to be sent and told to the sink. */
  end(prefix: string): HeldText[] {
    return this.engine.end?.(prefix) ?? []
  }

  /** Ends all texts whose rest will not be sent: what was held back of them stays here. */
  abandon(): void {
    this.sink(0, this.engine.held?.() ?? 0)
    this.engine.drop?.()
  }

  /** Nothing of the current unit leaves, and nothing of what was held back before it. */
  refuse(length: number): void {
    if (!this.#unitEnded) this.endUnit(length)
    this.sink(0, length + this.#heldBefore)
    this.#heldBefore = 0
    this.engine.drop?.()
  }

  /** Tells of content that no engine reads. @throws ApiError `dlp_blocked` where it must not pass. */
  uninspectable(kind: Direction): void {
    this.engine.uninspectable?.(kind)
  }

  /** Ends a unit of `length` source bytes: what no text covered was not inspected. */
  endUnit(length: number): void {
    this.counts.uninspected += length - this.#unit
    this.#unit = 0
    this.#unitEnded = true
  }

  /** Told by the sink: source bytes that left, and source bytes that will not. */
  sink(released: number, withheld: number): void {
    this.counts.released += released
    this.counts.withheld += withheld
  }
}
