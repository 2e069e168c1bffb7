import type { Inspection, TextField } from '../../dlp/inspection.ts'
import type { Direction } from '../../dlp/types.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { JsonPath } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { type FrameString, type HeldFrame, heldFrame, inspectPiece } from './streamed-texts.ts'
import { lastName } from './text-fields.ts'

/** Texts of a messages stream, each followed over the deltas of its block. */

/** Members of blocks that their deltas continue. */
const CONTINUED = new Set(['text', 'thinking'])
/** Type of the events whose deltas hold pieces of texts. The delta of a message holds whole values. */
const STREAMING = 'content_block_delta'

/** Members of an event that identify its texts. */
export interface TextEvent {
  type: string
  /** Index of the block that it is about. */
  block: number
  /** Type of its delta. */
  delta: string
}

export class EventTexts {
  readonly #inspection: Inspection
  readonly #signsThinking: boolean
  /** The type of a delta, by its member. */
  readonly #types = new Map<string, string>()
  /** Changed blocks of thinking: their signatures no longer fit. */
  readonly changedThinking = new Set<number>()

  /** @param signsThinking whether the caller receives signatures of thinking, and may send them back. */
  constructor(inspection: Inspection, signsThinking: boolean) {
    this.#inspection = inspection
    this.#signsThinking = signsThinking
  }

  /** Inspects the strings of an event, in slices. */
  *edits(strings: readonly FrameString[], source: Uint8Array, event: TextEvent): Slices<ByteEdit[]> {
    const edits: ByteEdit[] = []
    for (const string of strings) {
      const edit = yield* this.#edit(string, source, event)
      if (edit) edits.push(edit)
    }
    return edits
  }

  *#edit(
    string: FrameString,
    source: Uint8Array,
    { type, block, delta }: TextEvent,
  ): Slices<ByteEdit | null> {
    const { path, start, end } = string
    const name = String(path[1])
    // A block may begin with the first piece of its text. Every member of its deltas may be a piece of one.
    const isPiece =
      path[0] === 'delta' ? type === STREAMING : path[0] === 'content_block' && CONTINUED.has(name)
    if (path.length !== 2 || !isPiece)
      return yield* this.#inspection.textInSlices(fieldOf(path), source, start, end)
    if (path[0] === 'delta') this.#types.set(name, delta)
    const json = name === 'partial_json'
    const kind = json ? 'tool_arguments' : 'response'
    const signed = name === 'thinking' && this.#signsThinking
    const text = { key: `${block}:${name}`, kind, json, last: false, signed } as const
    const edit = yield* inspectPiece(this.#inspection, string, source, text)
    if (name === 'thinking' && (edit?.withheld ?? 0) > 0) this.changedThinking.add(block)
    return edit
  }

  /** Ends the texts of a block, or all texts, in slices. @returns frames with the text that was held back. */
  *end(block: number | null): Slices<HeldFrame[]> {
    const ended = yield* this.#inspection.end(block === null ? '' : `${block}:`)
    return ended.map((held) => {
      const [index = '0', ...names] = held.key.split(':')
      const name = names.join(':')
      if (name === 'thinking' && held.withheld > 0) this.changedThinking.add(Number(index))
      const type = this.#types.get(name) ?? `${name}_delta`
      return heldFrame(STREAMING, held, (text) => {
        return { type: STREAMING, index: Number(index), delta: { type, [name]: text } }
      })
    })
  }
}

/** A text that is not streamed in pieces. */
export function fieldOf(path: JsonPath): TextField {
  const kind = eventDirection(path)
  return { path, partial: false, kind, ...(kind === 'tool_arguments' && { name: lastName(path) }) }
}

/** Whether a text is input of a tool, the result of a tool of the provider, or the answer itself. */
export function eventDirection(path: JsonPath): Direction {
  if (path.includes('input')) return 'tool_arguments'
  const nested = path[0] === 'content_block' ? path[1] : path[2]
  return nested === 'content' ? 'tool_result' : 'response'
}
