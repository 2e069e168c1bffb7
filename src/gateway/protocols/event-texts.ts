import type { Inspection, TextField } from '../../governance/dlp/inspection.ts'
import type { Direction } from '../../governance/dlp/types.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { JsonPath } from '../../lib/json-scan.ts'
import { encodeFrame } from '../../lib/sse.ts'
import { type FrameString, type HeldFrame, heldText, inspectPiece } from './streamed-texts.ts'
import { lastName } from './text-fields.ts'

/** Texts of a messages stream, each followed over the deltas of its block. */

/** Members of deltas that are pieces of a text, with the type of their delta. */
const STREAMED: Record<string, string> = {
  text: 'text_delta',
  thinking: 'thinking_delta',
  partial_json: 'input_json_delta',
}

export class EventTexts {
  readonly #inspection: Inspection
  readonly #signsThinking: boolean
  /** Blocks of thinking that were changed: what its provider signed is no longer what it wrote. */
  readonly changedThinking = new Set<number>()

  /** @param signsThinking whether the caller gets the signatures of thinking, and may send them back. */
  constructor(inspection: Inspection, signsThinking: boolean) {
    this.#inspection = inspection
    this.#signsThinking = signsThinking
  }

  /** @param block index of the block that a delta belongs to. */
  edits(strings: readonly FrameString[], source: Uint8Array, block: number): ByteEdit[] {
    const edits: ByteEdit[] = []
    for (const string of strings) {
      const edit = this.#edit(string, source, block)
      if (edit) edits.push(edit)
    }
    return edits
  }

  #edit(string: FrameString, source: Uint8Array, block: number): ByteEdit | null {
    const { path, start, end } = string
    const name = String(path[1])
    // A block may begin with the first piece of its text.
    const isPart = path.length === 2 && (path[0] === 'delta' || path[0] === 'content_block')
    if (!isPart || !Object.hasOwn(STREAMED, name)) {
      return this.#inspection.text(fieldOf(path), source, start, end)
    }
    const json = name === 'partial_json'
    const kind = json ? 'tool_arguments' : 'response'
    const signed = name === 'thinking' && this.#signsThinking
    const text = { key: `${block}:${name}`, kind, json, last: false, signed } as const
    const edit = inspectPiece(this.#inspection, string, source, text)
    if (name === 'thinking' && (edit?.withheld ?? 0) > 0) this.changedThinking.add(block)
    return edit
  }

  /** Ends the texts of a block, or all. @returns frames that tell what was held back of them. */
  end(block: number | null): HeldFrame[] {
    return this.#inspection.end(block === null ? '' : `${block}:`).map((held) => {
      const [index = '0', name = 'text'] = held.key.split(':')
      if (name === 'thinking' && held.withheld > 0) this.changedThinking.add(Number(index))
      const delta = { type: STREAMED[name], [name]: heldText(held) }
      const bytes = encodeFrame('content_block_delta', {
        type: 'content_block_delta',
        index: Number(index),
        delta,
      })
      return { bytes, released: held.released, withheld: held.withheld }
    })
  }
}

/** A text that is there as a whole. */
export function fieldOf(path: JsonPath): TextField {
  const kind = kindOf(path)
  return { path, partial: false, kind, ...(kind === 'tool_arguments' && { name: lastName(path) }) }
}

/** What a tool is called with, and what one that ran at the provider found. */
export function kindOf(path: JsonPath): Direction {
  if (path.includes('input')) return 'tool_arguments'
  const nested = path[0] === 'content_block' ? path[1] : path[2]
  return nested === 'content' ? 'tool_result' : 'response'
}
