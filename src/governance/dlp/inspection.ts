import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { JsonPath } from '../../lib/json-scan.ts'
import type { InspectionCounts } from '../audit-record.ts'

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
}

/** Decides about texts. Pure: no I/O. One instance serves one direction of one call. */
export interface TextEngine {
  policyVersion: string
  /**
   * @param contents a JSON string's contents in source form (escapes untouched).
   * @returns what to send in its place, in the same form, or null to leave it.
   */
  inspect(field: TextField, contents: Uint8Array): Uint8Array | null
  findings(): Record<string, number>
}

/** An engine without a policy: every text passes. */
export const passAllEngine: TextEngine = {
  policyVersion: 'none',
  inspect: () => null,
  findings: () => ({}),
}

/** Counts what an engine sees of one direction, and what the sink lets out. */
export class Inspection {
  readonly engine: TextEngine
  readonly counts: InspectionCounts = { inspected: 0, uninspected: 0, released: 0, withheld: 0 }
  #unit = 0

  constructor(engine: TextEngine) {
    this.engine = engine
  }

  /** Shows a string of the current unit to the engine. @returns the edit it asks for. */
  text(field: TextField, source: Uint8Array, start: number, end: number): ByteEdit | null {
    this.counts.inspected += end - start
    this.#unit += end - start
    const replacement = this.engine.inspect(field, source.subarray(start, end))
    return replacement && { start, end, replacement }
  }

  /** Ends a unit (a body, a frame) of `length` source bytes: what no text covered was not inspected. */
  endUnit(length: number): void {
    this.counts.uninspected += length - this.#unit
    this.#unit = 0
  }

  /** Told by the sink: source bytes that left, and source bytes that will not. */
  sink(released: number, withheld: number): void {
    this.counts.released += released
    this.counts.withheld += withheld
  }
}
