import { type Json, listOf, objectOf, textOf } from '../json.ts'

/** Puts the content blocks of the messages protocol together from the events of a stream, whatever their types. */
export class BlockFold {
  readonly #blocks: Json[] = []
  readonly #inputs = new Map<Json, string>()

  event(data: Json): void {
    const index = Number(data.index)
    if (data.type === 'content_block_start') this.#blocks[index] = { ...objectOf(data.content_block) }
    else if (data.type === 'content_block_delta') {
      const block = this.#blocks[index]
      if (block) this.#delta(block, objectOf(data.delta))
    }
  }

  /** @param input reads the text of a block's input. @returns the blocks in their order. */
  content(input: (json: string) => unknown): Json[] {
    for (const [block, json] of this.#inputs) {
      if (json.trim() !== '') block.input = input(json)
    }
    return this.#blocks.filter((block) => block !== undefined)
  }

  #delta(block: Json, delta: Json): void {
    const type = textOf(delta.type)
    if (type === 'input_json_delta') {
      this.#inputs.set(block, (this.#inputs.get(block) ?? '') + textOf(delta.partial_json))
    } else DELTAS.get(type)?.(block, delta)
  }
}

const DELTAS = new Map<string, (block: Json, delta: Json) => void>([
  ['text_delta', (block, delta) => append(block, 'text', delta)],
  ['thinking_delta', (block, delta) => append(block, 'thinking', delta)],
  // One, before the block's end; a later one replaces it.
  ['signature_delta', (block, delta) => Object.assign(block, { signature: delta.signature })],
  [
    'citations_delta',
    (block, delta) => {
      block.citations = [...listOf(block.citations), objectOf(delta.citation)]
    },
  ],
  // It carries the whole value, null for one that failed.
  ['compaction_delta', (block, { type: _type, ...value }) => Object.assign(block, value)],
])

function append(block: Json, member: string, delta: Json): void {
  block[member] = textOf(block[member]) + textOf(delta[member])
}
