import type { ByteEdit } from '../../lib/byte-edits.ts'

/** A range of bytes. */
export interface Place {
  start: number
  end: number
}

/**
 * Empties the signatures of parts that have another text than the model wrote.
 * @param edits of the answer, in any order. @param signed parts with the contents of their signatures, in any order; they do
 * not overlap.
 */
export function emptiedSignatures(
  edits: readonly ByteEdit[],
  signed: ReadonlyArray<{ place: Place; signature: Place }>,
): ByteEdit[] {
  const changes = edits.filter(({ start, end, withheld = end - start }) => withheld > 0)
  const starts = changes.map(({ start }) => start).sort((left, right) => left - right)
  const ordered = [...signed].sort((left, right) => left.place.start - right.place.start)
  let next = 0
  return ordered.flatMap(({ place, signature }): ByteEdit[] => {
    while ((starts[next] ?? Number.POSITIVE_INFINITY) < place.start) next++
    const isEdited = (starts[next] ?? Number.POSITIVE_INFINITY) < place.end
    return isEdited ? [{ ...signature, replacement: new Uint8Array() }] : []
  })
}
