import type { HeldText, Inspection } from '../../dlp/inspection.ts'
import { type JsonValuePlace, nameAndNumberInSlices } from '../../dlp/names-and-numbers.ts'
import type { Direction } from '../../dlp/types.ts'
import { type ByteEdit, joinBytes } from '../../lib/byte-edits.ts'
import type { JsonKind, JsonPath } from '../../lib/json-visitor.ts'
import { drained, type Slices } from '../../lib/slices.ts'

/** A frame of our own with held-back text. */
export interface HeldFrame {
  bytes: Uint8Array
  /** Source bytes of earlier frames that are released with it, and those that will not be released. */
  released: number
  withheld: number
}

/** Direction and form of a text. */
export interface TextKind {
  kind: Direction
  /** Whether the text is itself JSON. */
  json: boolean
}

/** A string of a frame. */
export interface FrameString {
  path: JsonPath
  start: number
  end: number
}

/** The text of a stream that a string is a piece of. */
interface StreamedText extends TextKind {
  /** Begins with the key of the choice or block that the text belongs to, and ends with it. */
  key: string
  /** Whether the text ends with this piece. */
  last: boolean
  signed?: boolean
}

/** Inspects a piece of a streamed text, in slices. @returns the edit that the inspection demands. */
export function* inspectPiece(
  inspection: Inspection,
  { path, start, end }: FrameString,
  source: Uint8Array,
  { key, kind, json, last, signed = false }: StreamedText,
): Slices<ByteEdit | null> {
  const field = { path, partial: true, key, kind, json, signed }
  const edit = yield* inspection.textInSlices(field, source, start, end)
  if (!last) return edit
  const [held] = yield* inspection.end(key)
  if (!held) return edit
  const before = edit?.replacement ?? (edit ? new Uint8Array() : source.subarray(start, end))
  const contents = new Uint8Array(before.length + held.contents.length)
  contents.set(before)
  contents.set(held.contents, before.length)
  return {
    start,
    end,
    replacement: contents,
    released: (edit ? (edit.released ?? 0) : end - start) + held.released,
    withheld: (edit ? (edit.withheld ?? end - start) : 0) + held.withheld,
  }
}

/**
 * Inspects names and numbers of a tool's input; its strings are inspected apart.
 * @param place of a value at or within `input`.
 */
export function inspectOwnValue(
  inspection: Inspection,
  place: JsonValuePlace,
  kind: JsonKind,
  source: Uint8Array,
): ByteEdit[] {
  return drained(inspectOwnValueInSlices(inspection, place, kind, source))
}

/** `inspectOwnValue` in slices. */
export function inspectOwnValueInSlices(
  inspection: Inspection,
  place: JsonValuePlace,
  kind: JsonKind,
  source: Uint8Array,
): Slices<ByteEdit[]> {
  return nameAndNumberInSlices(inspection, ownValuePlace(place), kind, source, 'tool_arguments')
}

/** The place without a name where it is that of the input itself, which is the protocol's. */
export const ownValuePlace = (place: JsonValuePlace): JsonValuePlace =>
  place.path.indexOf('input') < place.path.length - 1 ? place : { ...place, path: [] }

const encoder = new TextEncoder()

/**
 * A frame with held-back text.
 * @param dataOf makes the payload of the frame around a text, the last one of it.
 */
export function heldFrame(
  event: string | null,
  { contents, released, withheld }: HeldText,
  dataOf: (text: string) => unknown,
): HeldFrame {
  // The contents are not parsed and encoded again: they may have megabytes.
  const payload = JSON.stringify(dataOf(PLACE))
  const at = payload.lastIndexOf(PLACE_SOURCE)
  const bytes = joinBytes([
    encoder.encode(`${event === null ? '' : `event: ${event}\n`}data: ${payload.slice(0, at)}`),
    contents,
    encoder.encode(`${payload.slice(at + PLACE_SOURCE.length)}\n\n`),
  ])
  return { bytes, released, withheld }
}

/** Stands for the contents. */
const PLACE = '\u0000held'
const PLACE_SOURCE = JSON.stringify(PLACE).slice(1, -1)
