/** Begins the signatures that are sent to callers with a mark of their origin; no vendor's has the full stop. */
export const SIGNATURE_MARK = 'headgate.'

/** Bytes that are searched in one slice: about a millisecond. */
const SEARCHED_AT_ONCE = 1024 * 1024

/** Whether a body has one of some texts somewhere, in slices. */
export function* holdsAny(body: Uint8Array, texts: readonly Buffer[]): Generator<void, boolean> {
  const overlap = Math.max(...texts.map(({ length }) => length)) - 1
  for (let at = 0; at < body.length; at += SEARCHED_AT_ONCE) {
    const end = Math.min(body.length, at + SEARCHED_AT_ONCE + overlap)
    const part = Buffer.from(body.buffer, body.byteOffset + at, end - at)
    if (texts.some((text) => part.includes(text))) return true
    if (end < body.length) yield
  }
  return false
}

/** Whether a string begins with the mark. @param start of its contents. */
export const isMarkedAt = (body: Uint8Array, start: number): boolean =>
  Buffer.from(
    body.buffer,
    body.byteOffset + start,
    Math.min(SIGNATURE_MARK.length, body.length - start),
  ).toString() === SIGNATURE_MARK
