import type { Inspection } from '../../dlp/inspection.ts'
import { applyEdits, type ByteEdit, joinBytes } from '../../lib/byte-edits.ts'
import { JsonSyntaxError } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import type { SseFrame } from '../../lib/sse.ts'
import type { FrameVerdict } from './protocol.ts'

const decoder = new TextDecoder()

/** The value of the JSON text that lies in `bytes` at a place. */
export const jsonAt = (bytes: Uint8Array, { start, end }: { start: number; end: number }): unknown =>
  JSON.parse(decoder.decode(bytes.subarray(start, end)))

/** The value of a JSON text after its edits. */
export const editedJson = (bytes: Uint8Array, edits: ByteEdit[]): unknown =>
  JSON.parse(decoder.decode(joinBytes(applyEdits(bytes, edits).pieces)))

/**
 * Scans the payload of a frame and ends the frame's unit of the inspection.
 * @param scan of the payload. @returns null, or the failure of a payload that is not JSON.
 */
export function* scanFrame(
  frame: SseFrame,
  inspection: Inspection,
  scan: Slices<void>,
): Slices<FrameVerdict | null> {
  try {
    yield* scan
    return null
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    return { kind: 'failure', message: 'The upstream sent an event that is not JSON.', forward: null }
  } finally {
    inspection.endUnit(frame.bytes.length)
  }
}

/** Moves edits of a frame's payload to their places in the frame. */
export function moveToFrame(edits: readonly ByteEdit[], { dataStart }: SseFrame): void {
  for (const edit of edits) {
    edit.start += dataStart
    edit.end += dataStart
  }
}
