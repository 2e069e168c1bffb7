import type { HeldText, Inspection } from '../../governance/dlp/inspection.ts'
import type { Direction } from '../../governance/dlp/types.ts'
import { type ByteEdit, joinBytes } from '../../lib/byte-edits.ts'
import type { JsonKind, JsonPath } from '../../lib/json-scan.ts'
import { lastName } from './text-fields.ts'

/** A frame of our own that tells what was held back of a text. */
export interface HeldFrame {
  bytes: Uint8Array
  /** For the sink: source bytes of earlier frames that pass with it, and those that never will. */
  released: number
  withheld: number
}

/** What a text is. */
export interface TextKind {
  kind: Direction
  /** Whether it is JSON by itself. */
  json: boolean
}

/** A string of a frame. */
export interface FrameString {
  path: JsonPath
  start: number
  end: number
}

/** The text of a stream that a string is a piece of. */
export interface StreamedText extends TextKind {
  /** Begins with the part of the answer that the text belongs to, and ends as that part does. */
  key: string
  /** Whether the text ends with this piece. */
  last: boolean
  signed?: boolean
}

/** Shows a piece to the inspection. @returns the edit that it asks for. */
export function inspectPiece(
  inspection: Inspection,
  { path, start, end }: FrameString,
  source: Uint8Array,
  { key, kind, json, last, signed = false }: StreamedText,
): ByteEdit | null {
  const edit = inspection.text({ path, partial: true, key, kind, json, signed }, source, start, end)
  if (!last) return edit
  const [held] = inspection.end(key)
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

/** A value by its place, with that of its name. */
export interface OwnValue extends FrameString {
  memberStart: number
}

/**
 * Shows what the strings of a tool's input do not: the name of a value, and a number, in whose place a string is put.
 * @param place of a value at or within `input`.
 */
export function inspectOwnValue(
  inspection: Inspection,
  { path, start, end, memberStart }: OwnValue,
  kind: JsonKind,
  source: Uint8Array,
): ByteEdit[] {
  const edits: ByteEdit[] = []
  const field = { path, partial: false, kind: 'tool_arguments' } as const
  const isMember = typeof path[path.length - 1] === 'string' && path.indexOf('input') < path.length - 1
  if (isMember) {
    const name = inspection.text(field, source, memberStart + 1, endOfString(source, memberStart + 1))
    if (name) edits.push(name)
  }
  if (kind !== 'number') return edits
  const edit = inspection.text({ ...field, name: lastName(path) }, source, start, end)
  if (!edit) return edits
  const { replacement } = edit
  edits.push(replacement ? { ...edit, replacement: joinBytes([QUOTE, replacement, QUOTE]) } : edit)
  return edits
}

/** The closing quote of a string. */
export function endOfString(source: Uint8Array, contents: number): number {
  let at = contents
  while (at < source.length && source[at] !== DOUBLE_QUOTE) at += source[at] === BACKSLASH ? 2 : 1
  return at
}

const DOUBLE_QUOTE = 0x22
const BACKSLASH = 0x5c
const QUOTE = new TextEncoder().encode('"')
const decoder = new TextDecoder()

/** What was held back, as text. */
export const heldText = ({ contents }: HeldText): string =>
  JSON.parse(`"${decoder.decode(contents)}"`) as string
