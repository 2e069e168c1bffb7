import type { Inspection } from '../../dlp/inspection.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { PLAIN } from '../../lib/json-tokens.ts'
import type { JsonPath } from '../../lib/json-visitor.ts'
import type { SseFrame } from '../../lib/sse.ts'
import { moveToFrame } from './frame-json.ts'
import type { AlikeVerdict } from './protocol.ts'

/**
 * Frames of a stream that differ from an earlier one in the contents of its texts alone, as most do. Their bytes are
 * compared with those of the earlier one instead of being scanned: around other contents that are valid without an escape,
 * the same bytes are the same JSON. For streams under no policy, where the contents decide nothing but their length.
 */

/** A string of a frame whose contents change. */
export interface ChangingString {
  start: number
  end: number
  /** Whether the string counts as text. */
  isText: boolean
}

/** Effects of a frame on its reader, besides those that all frames have in common. */
interface FrameEffects {
  /** Edits at places in the payload. */
  edits: ByteEdit[]
  /** Bytes of generated text. */
  textBytes: number
  /** Bytes that count as inspected. */
  inspected: number
}

/** Members of a delta whose strings are text whatever they hold (`isText`). */
const DELTA_TEXTS: ReadonlySet<unknown> = new Set([
  'content',
  'reasoning_content',
  'reasoning',
  'arguments',
  'text',
  'thinking',
  'partial_json',
])
/** Padding that some upstreams add to every frame. It is no text. */
const PADDING = 'obfuscation'

/** A string as one that changes; null where its contents may decide something. @param isOfDelta whether it is in a delta. */
export function changingString(
  path: JsonPath,
  isOfDelta: boolean,
  start: number,
  end: number,
): ChangingString | null {
  // A frame with a text may decide something that one without does not, such as that a model has reasoned.
  if (end === start) return null
  if (path.length === 1 && path[0] === PADDING) return { start, end, isText: false }
  return isOfDelta && DELTA_TEXTS.has(path[path.length - 1]) ? { start, end, isText: true } : null
}

export class FrameTemplate {
  /** The bytes between the strings that change, with their quotes. */
  readonly #fixed: readonly Uint8Array[]
  readonly #strings: readonly ChangingString[]
  readonly #effects: FrameEffects

  /**
   * @param payload of a frame that was scanned. @param strings of it that change, in their order.
   * @param effects of this frame; its edits lie outside these strings.
   */
  constructor(payload: Uint8Array, strings: readonly ChangingString[], effects: FrameEffects) {
    const starts = [0, ...strings.map(({ end }) => end)]
    const ends = [...strings.map(({ start }) => start), payload.length]
    // Copies: the payload is a part of a larger chunk.
    this.#fixed = starts.map((start, index) => payload.slice(start, ends[index]))
    this.#strings = strings
    const texts = strings.reduce((sum, { start, end, isText }) => sum + (isText ? end - start : 0), 0)
    const edits = effects.edits.map((edit) => ({ ...edit }))
    this.#effects = { edits, textBytes: effects.textBytes - texts, inspected: effects.inspected - texts }
  }

  /** The effects of a frame that is like the one of the template; null for any other, which has to be scanned. */
  effectsOf(payload: Uint8Array): FrameEffects | null {
    const fixed = this.#fixed
    /** Growth of each string, with all strings before it. */
    const growth: number[] = []
    let [at, texts] = [0, 0]
    for (let index = 0; index < fixed.length; index++) {
      const part = fixed[index] as Uint8Array
      if (!standsAt(part, payload, at)) return null
      at += part.length
      const string = this.#strings[index]
      if (string === undefined) break
      const start = at
      while (PLAIN[payload[at] as number]) at++
      if (string.isText) texts += at - start
      growth.push(at - string.end)
    }
    if (at !== payload.length) return null
    const { edits, textBytes, inspected } = this.#effects
    return {
      edits: edits.map((edit) => this.#moved(edit, growth)),
      textBytes: textBytes + texts,
      inspected: inspected + texts,
    }
  }

  #moved({ start, end, replacement }: ByteEdit, growth: readonly number[]): ByteEdit {
    let by = 0
    for (let index = 0; index < growth.length; index++) {
      if ((this.#strings[index] as ChangingString).end <= start) by = growth[index] as number
    }
    return { start: start + by, end: end + by, replacement }
  }
}

function standsAt(part: Uint8Array, payload: Uint8Array, at: number): boolean {
  if (at + part.length > payload.length) return false
  for (let index = 0; index < part.length; index++) if (part[index] !== payload[at + index]) return false
  return true
}

/** Counts a frame that is like its template. @returns the verdict on it. */
export function alikeVerdict(
  { edits, inspected }: FrameEffects,
  frame: SseFrame,
  inspection: Pick<Inspection, 'count' | 'endUnit'>,
): AlikeVerdict {
  inspection.count(inspected)
  inspection.endUnit(frame.bytes.length)
  moveToFrame(edits, frame)
  return { kind: 'forward', edits, started: true }
}
