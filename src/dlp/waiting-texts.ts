import type { ByteEdit } from '../lib/byte-edits.ts'
import { scanJson, scanJsonInSlices, slicesOfBytes } from '../lib/json-scan.ts'
import type { JsonKind, JsonVisitor } from '../lib/json-visitor.ts'
import type { Slices } from '../lib/slices.ts'
import type { Inspection, TextField } from './inspection.ts'
import { type JsonValuePlace, nameAndNumberInSlices } from './names-and-numbers.ts'
import { checkEdits } from './scan/scan-budget.ts'
import type { Direction } from './types.ts'

/** Bytes that wait before they are inspected; every text or value counts as some. */
const SLICE_BYTES = 16 * 1024
const VALUE_BYTES = 64

/** Texts, names and numbers that a scan of JSON has passed. They are inspected, in slices, before the scan goes on. */
export class WaitingTexts {
  readonly #inspection: Inspection
  readonly #source: Uint8Array
  readonly #texts: Array<{ field: TextField; start: number; end: number }> = []
  readonly #values: Array<{ place: JsonValuePlace; kind: JsonKind; direction: Direction }> = []
  #bytes = 0

  /** @param source the JSON that is scanned. */
  constructor(inspection: Inspection, source: Uint8Array) {
    this.#inspection = inspection
    this.#source = source
  }

  /** Whether the scan has to pause for `inspect`. */
  get isDue(): boolean {
    return this.#bytes > SLICE_BYTES
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  /** Adds the contents of a string. The path of the field may change afterwards. */
  addText(field: TextField, start: number, end: number): void {
    this.#texts.push({ field: { ...field, path: [...field.path] }, start, end })
    this.#bytes += end - start + VALUE_BYTES
  }

  /** Adds the name of a member, where the path ends in one, and the value where it is a number. */
  addValue(place: JsonValuePlace, kind: JsonKind, direction: Direction): void {
    const isName = typeof place.path[place.path.length - 1] === 'string'
    if (!isName && kind !== 'number') return
    this.#values.push({ place: { ...place, path: [...place.path] }, kind, direction })
    this.#bytes += (kind === 'number' ? place.end : place.nameEnd) - place.memberStart + VALUE_BYTES
  }

  /**
   * Inspects all that was added since the last call.
   * @returns the edits that it demands. @throws ApiError `dlp_blocked` for a finding that blocks the call.
   */
  *inspect(): Slices<ByteEdit[]> {
    const edits: ByteEdit[] = []
    this.#bytes = 0
    for (const { field, start, end } of this.#texts.splice(0)) {
      const edit = yield* this.#inspection.textInSlices(field, this.#source, start, end)
      if (edit) edits.push(edit)
    }
    for (const { place, kind, direction } of this.#values.splice(0)) {
      edits.push(...(yield* nameAndNumberInSlices(this.#inspection, place, kind, this.#source, direction)))
    }
    return edits
  }
}

/**
 * Scans JSON, and inspects what the visitor adds to `waiting` before the scan goes on.
 * @returns the edits of the inspection. @throws JsonSyntaxError, and ApiError `dlp_too_complex` for too many edits.
 */
export function* inspectWhileScanning(
  source: Uint8Array,
  visitor: JsonVisitor,
  waiting: WaitingTexts,
): Slices<ByteEdit[]> {
  if (source.length <= SLICE_BYTES) {
    // Most events of streams: a pause in the scan of so few bytes would cost more than it gives.
    scanJson(source, visitor)
    return waiting.isEmpty ? [] : yield* waiting.inspect()
  }
  const edits: ByteEdit[] = []
  const due = slicesOfBytes()
  for (const _pause of scanJsonInSlices(source, visitor, (at) => due(at) || waiting.isDue)) {
    for (const edit of yield* waiting.inspect()) edits.push(edit)
    checkEdits(edits.length)
    yield
  }
  for (const edit of yield* waiting.inspect()) edits.push(edit)
  return edits
}
