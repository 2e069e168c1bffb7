import { type ByteEdit, joinBytes } from '../lib/byte-edits.ts'
import type { JsonKind, JsonPath } from '../lib/json-visitor.ts'
import type { Slices } from '../lib/slices.ts'
import type { Inspection } from './inspection.ts'
import type { Direction } from './types.ts'

/** The place of a value and of its member. */
export interface JsonValuePlace {
  path: JsonPath
  start: number
  end: number
  memberStart: number
  /** The closing quote of the member's name. */
  nameEnd: number
}

/**
 * Inspects the name of a member, and a number, which is replaced by a string.
 * @returns the edits.
 */
export function* nameAndNumberInSlices(
  inspection: Inspection,
  { path, start, end, memberStart, nameEnd }: JsonValuePlace,
  kind: JsonKind,
  source: Uint8Array,
  direction: Direction,
): Slices<ByteEdit[]> {
  const edits: ByteEdit[] = []
  const field = { path, partial: false, kind: direction }
  const name = path[path.length - 1]
  if (typeof name === 'string') {
    const edit = yield* inspection.textInSlices(field, source, memberStart + 1, nameEnd)
    if (edit) edits.push(edit)
  }
  if (kind !== 'number') return edits
  const memberName = path.findLast((part) => typeof part === 'string') ?? ''
  const edit = yield* inspection.textInSlices({ ...field, name: memberName }, source, start, end)
  if (!edit) return edits
  const { replacement } = edit
  edits.push(replacement ? { ...edit, replacement: joinBytes([QUOTE, replacement, QUOTE]) } : edit)
  return edits
}

const QUOTE = new TextEncoder().encode('"')
