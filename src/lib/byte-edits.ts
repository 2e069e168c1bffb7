import { drained, type Slices, sortedInSlices } from './slices.ts'

/** An edit of bytes. */
export interface ByteEdit {
  /** Source range that is replaced; empty for an insertion. */
  start: number
  end: number
  replacement: Uint8Array | null
  /** Source bytes that the replacement contains, possibly of an earlier source. Default 0. */
  released?: number
  /** Source bytes that are removed and not released later. Default: all of the range. */
  withheld?: number
}

export interface EditedBytes {
  pieces: Uint8Array[]
  length: number
  /** Source bytes in the result, and those that were cut out. Insertions count in neither. */
  released: number
  withheld: number
}

/**
 * Applies edits without copying unchanged bytes.
 * @param edits in any order, not overlapping.
 * @throws Error if two edits overlap, because one of them would be lost silently.
 */
export const applyEdits = (source: Uint8Array, edits: ByteEdit[]): EditedBytes =>
  drained(applyEditsInSlices(source, edits))

/** `applyEdits` in slices. */
export function* applyEditsInSlices(source: Uint8Array, edits: ByteEdit[]): Slices<EditedBytes> {
  if (edits.length === 0)
    return { pieces: [source], length: source.length, released: source.length, withheld: 0 }
  const result: EditedBytes = { pieces: [], length: 0, released: 0, withheld: 0 }
  let at = 0
  const push = (piece: Uint8Array) => {
    if (piece.length === 0) return
    result.pieces.push(piece)
    result.length += piece.length
  }
  const ordered = edits.length === 1 ? edits : yield* sortedInSlices(edits, byPlace)
  for (const [index, edit] of ordered.entries()) {
    if (index % EDITS_AT_ONCE === EDITS_AT_ONCE - 1) yield
    if (edit.start < at) throw new Error('overlapping edits')
    push(source.subarray(at, edit.start))
    result.released += edit.start - at + (edit.released ?? 0)
    result.withheld += edit.withheld ?? edit.end - edit.start
    if (edit.replacement) push(edit.replacement)
    at = edit.end
  }
  push(source.subarray(at))
  result.released += source.length - at
  return result
}

/** `applyEdits` with the result in one array: fast for a single edit. */
export function editedBytes(
  source: Uint8Array,
  edits: ByteEdit[],
): Omit<EditedBytes, 'pieces' | 'length'> & { bytes: Uint8Array } {
  const [edit] = edits
  if (!edit || edits.length > 1) {
    const { pieces, released, withheld } = applyEdits(source, edits)
    return { bytes: joinBytes(pieces), released, withheld }
  }
  const { start, end, replacement, released = 0, withheld = end - start } = edit
  const left = source.length - (end - start)
  const inserted = replacement?.length ?? 0
  const bytes = new Uint8Array(left + inserted)
  bytes.set(source.subarray(0, start))
  if (replacement) bytes.set(replacement, start)
  bytes.set(source.subarray(end), start + inserted)
  return { bytes, released: left + released, withheld }
}

const EDITS_AT_ONCE = 4096
const byPlace = (left: ByteEdit, right: ByteEdit) => left.start - right.start || left.end - right.end

/** Joins pieces into one array. A single piece is returned without a copy. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  if (pieces.length === 1 && pieces[0]) return pieces[0]
  const joined = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    joined.set(piece, at)
    at += piece.length
  }
  return joined
}

const PIECES_AT_ONCE = 16 * 1024

/** `joinBytes` in slices. */
export function* joinBytesInSlices(pieces: readonly Uint8Array[]): Slices<Uint8Array> {
  if (pieces.length <= PIECES_AT_ONCE) return joinBytes(pieces)
  const joined: Uint8Array[] = []
  for (let at = 0; at < pieces.length; at += PIECES_AT_ONCE) {
    if (at > 0) yield
    joined.push(joinBytes(pieces.slice(at, at + PIECES_AT_ONCE)))
  }
  return joinBytes(joined)
}
