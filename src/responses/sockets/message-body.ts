import type { RequestContent } from '../model/types.ts'

/** Characters that are encoded at a time: a message may have 32 MB, and a second copy of it would fill the isolate. */
const PART_CHARACTERS = 64 * 1024

/** The text of a message as bytes, or as a byte stream if it is long. */
export function messageBody(text: string): RequestContent {
  const encoder = new TextEncoder()
  if (text.length <= PART_CHARACTERS) return encoder.encode(text)
  let at = 0
  return new ReadableStream(
    {
      type: 'bytes',
      pull(controller) {
        if (at < text.length) {
          const end = endOfPart(text, at)
          controller.enqueue(encoder.encode(text.slice(at, end)))
          at = end
          return
        }
        controller.close()
        controller.byobRequest?.respond(0)
      },
    } as UnderlyingByteSource,
    { highWaterMark: 0 },
  )
}

/** Keeps surrogate pairs together, which are one character in UTF-8. */
function endOfPart(text: string, from: number): number {
  const end = Math.min(text.length, from + PART_CHARACTERS)
  const last = text.charCodeAt(end - 1)
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end
}
