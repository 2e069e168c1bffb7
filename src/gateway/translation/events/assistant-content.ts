import { type Json, listOf, objectIn, textOf } from '../json.ts'
import { BlockFold } from './block-fold.ts'

/**
 * The content of an assistant turn of the messages protocol in full, in the order in which it came: text with its
 * citations, thinking with its signature, what the provider's own tools were asked and gave, and blocks of types that are
 * not known here. Sent back as it was, it lets a paused turn go on
 * (https://docs.anthropic.com/en/api/handling-stop-reasons).
 */
export class AssistantContent {
  readonly #fold = new BlockFold()

  /** Takes a frame of a stream. @param event its name, null where it has none. */
  frame(event: string | null, data: Json): void {
    this.#fold.event({ ...data, type: event || textOf(data.type) })
  }

  /** Takes a whole answer. */
  answer(body: Json): void {
    for (const [index, block] of listOf(body.content).entries()) {
      this.#fold.event({ type: 'content_block_start', index, content_block: block })
    }
  }

  /** @returns the blocks, but for empty texts: the provider writes them and refuses them. */
  blocks(): Json[] {
    return this.#fold.content(inputOf).filter((block) => block.type !== 'text' || textOf(block.text) !== '')
  }
}

/** A call that was cut off has no whole input; the provider takes nothing but an object. */
const inputOf = (json: string): Json => objectIn(json) ?? {}
