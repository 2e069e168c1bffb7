const encoder = new TextEncoder()
const decoder = new TextDecoder()

/**
 * Cuts a text in its middle, since both the beginning and the end of an output are of use.
 * @param limit UTF-8 bytes that remain, without the mark in between.
 */
export function cutOutput(text: string, limit: number): string {
  if (text.length * 3 <= limit) return text
  const bytes = encoder.encode(text)
  if (bytes.length <= limit) return text
  const half = Math.floor(limit / 2)
  const head = bytes.subarray(0, beginOfCharacter(bytes, limit - half))
  const tail = bytes.subarray(beginOfCharacter(bytes, bytes.length - half))
  const removed = bytes.length - head.length - tail.length
  return `${decoder.decode(head)}\n[… ${removed} bytes cut …]\n${decoder.decode(tail)}`
}

/** The first byte of the character at an index. */
function beginOfCharacter(bytes: Uint8Array, index: number): number {
  let at = index
  while (at > 0 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at--
  return at
}
