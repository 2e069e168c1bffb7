/** A longer text is inspected in slices, so that its decoded form is never in memory as a whole. */
const SLICE_BYTES = 64 * 1024
const BACKSLASH = 0x5c
const LETTER_U = 0x75
/** Bytes of `\\u1234`. */
const LONGEST_ESCAPE = 6

/** The contents of a JSON string in slices that split neither a character nor an escape. */
export function* sourceSlices(contents: Uint8Array): Generator<Uint8Array> {
  let at = 0
  while (contents.length - at > SLICE_BYTES + 2 * LONGEST_ESCAPE) {
    const end = boundaryAfter(contents, at)
    yield contents.subarray(at, end)
    at = end
  }
  yield contents.subarray(at)
}

/** The first place at or after a slice's length at which neither an escape nor a character goes on. */
function boundaryAfter(contents: Uint8Array, start: number): number {
  // A copy: a large body lies in a resizable buffer, which V8 reads slowly byte by byte.
  const slice = contents.slice(start, start + SLICE_BYTES + 2 * LONGEST_ESCAPE)
  let at = 0
  while (at < SLICE_BYTES) {
    if (slice[at] !== BACKSLASH) at++
    else at += slice[at + 1] === LETTER_U ? LONGEST_ESCAPE : 2
  }
  while (((slice[at] ?? 0) & 0xc0) === 0x80) at++
  return start + at
}
