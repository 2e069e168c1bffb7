import type { ByteEdit } from '../lib/byte-edits.ts'
import type { JsonPath } from '../lib/json-visitor.ts'
import type { Slices } from '../lib/slices.ts'
import type { FindingGroup, InspectionCounts } from '../wire/records.ts'
import type { Direction } from './types.ts'

/**
 * The seam between the wire and data-loss prevention. A protocol passes every inspectable string to an inspection, which
 * may return a replacement; all other bytes count as uninspected. The sink counts the bytes that leave on its own, so
 * that a byte that bypassed inspection shows as a difference.
 */

/** One string of a message: its place, and whether it is a piece of a longer text. */
export interface TextField {
  /** Member names and indexes from the root, the same for all pieces of one text. Live: copy it to keep it. */
  path: JsonPath
  /** True when more pieces of the same text can follow. */
  partial: boolean
  /** The engine's own direction where left out. */
  kind?: Direction
  /** Whether the text is JSON by itself, as arguments of a tool are. */
  json?: boolean
  /** Identifies the text that this is a piece of. Default: the path. */
  key?: string
  /** The name of the member that the text is the value of: a word before it. */
  name?: string
  /** Signed by its author, so tokens in it are not replaced by their values. */
  signed?: boolean
  /** Never changed: findings are counted and can block the call. */
  fixed?: boolean
  /** The text is base64, or a data URL of it (`isEncodedText`). */
  encoded?: boolean
}

/** The replacement of a string. */
export interface Replacement {
  /** Contents of a JSON string in source form. */
  contents: Uint8Array
  /** Source bytes that leave unchanged with it, with those of earlier pieces that were held back. */
  released: number
  /** Source bytes that are replaced, also of earlier pieces. */
  withheld: number
}

/** The end of a text that was held back. */
export interface HeldText extends Replacement {
  key: string
}

/** Inspects texts. Pure: no I/O. One instance serves one direction of one call. */
export interface TextEngine {
  policyVersion: string
  /** Never finds anything, so texts need not be read. */
  passive?: boolean
  /**
   * @param contents a JSON string's contents in source form (escapes untouched).
   * @returns the replacement, or null to leave it. Bytes alone replace the whole string.
   * @throws ApiError `dlp_blocked` for a finding that blocks the call.
   */
  inspect(field: TextField, contents: Uint8Array): Replacement | Uint8Array | null
  /** `inspect` with pauses for other requests between the slices of a long text. */
  inspectInSlices?(field: TextField, contents: Uint8Array): Slices<Replacement | Uint8Array | null>
  /** Ends the texts whose keys begin with a prefix, in slices. @returns those of which something was held back. */
  end?(prefix: string): Slices<HeldText[]>
  /** Source bytes that are held back. */
  held?(): number
  /** Drops all texts: the parts that are held back are never sent. */
  drop?(): void
  /** Called for content that cannot be inspected. @throws ApiError `dlp_blocked` where the policy blocks it. */
  uninspectable?(kind: Direction): void
  /** Findings by direction and action, without those that are allowed. */
  findings(): FindingGroup[]
}

/** An engine without a policy: every text passes. */
export const passAllEngine: TextEngine = {
  policyVersion: 'none',
  passive: true,
  inspect: () => null,
  findings: () => [],
}

function editOf(replacement: Replacement | Uint8Array | null, start: number, end: number): ByteEdit | null {
  if (!replacement) return null
  if (replacement instanceof Uint8Array) return { start, end, replacement }
  const { contents, released, withheld } = replacement
  return { start, end, replacement: contents, released, withheld }
}

/** Passes the texts of one direction to an engine, and counts the bytes at its input and at the sink. */
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

  /** Inspects a string of the current unit. @returns the edit that replaces it. */
  text(field: TextField, source: Uint8Array, start: number, end: number): ByteEdit | null {
    this.count(end - start)
    return editOf(this.engine.inspect(field, source.subarray(start, end)), start, end)
  }

  /**
   * Does what `text` does, in slices.
   * @param field a copy: it is read after other strings have been scanned.
   * @param isCounted for a string whose bytes were counted in another form.
   */
  *textInSlices(
    field: TextField,
    source: Uint8Array,
    start: number,
    end: number,
    isCounted = false,
  ): Slices<ByteEdit | null> {
    if (!isCounted) this.count(end - start)
    const contents = source.subarray(start, end)
    const replacement = this.engine.inspectInSlices
      ? yield* this.engine.inspectInSlices(field, contents)
      : this.engine.inspect(field, contents)
    return editOf(replacement, start, end)
  }

  /** Counts texts of the current unit that a passive engine need not read. */
  count(bytes: number): void {
    this.counts.inspected += bytes
    this.#unit += bytes
  }

  /** Ends texts of a stream, in slices. @returns their parts that were held back, to be sent and counted by the sink. */
  *end(prefix: string): Slices<HeldText[]> {
    return this.engine.end ? yield* this.engine.end(prefix) : []
  }

  /** Ends all texts without sending the parts that are held back. */
  abandon(): void {
    this.sink(0, this.engine.held?.() ?? 0)
    this.engine.drop?.()
  }

  /** Withholds the current unit and everything that was held back before it. */
  refuse(length: number): void {
    if (!this.#unitEnded) this.endUnit(length)
    this.sink(0, length + this.#heldBefore)
    this.#heldBefore = 0
    this.engine.drop?.()
  }

  /** Reports content that cannot be inspected. @throws ApiError `dlp_blocked` where the policy blocks it. */
  uninspectable(kind: Direction): void {
    this.engine.uninspectable?.(kind)
  }

  /** Ends a unit of `length` source bytes: those of no text count as uninspected. */
  endUnit(length: number): void {
    this.counts.uninspected += length - this.#unit
    this.#unit = 0
    this.#unitEnded = true
  }

  /** Called by the sink: counts source bytes that left, and source bytes that will not. */
  sink(released: number, withheld: number): void {
    this.counts.released += released
    this.counts.withheld += withheld
  }
}
