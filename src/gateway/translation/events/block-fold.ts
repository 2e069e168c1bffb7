import { type Json, listOf, objectOf, textOf } from '../json.ts'

/** Puts the content blocks of the messages protocol together from the events of a stream, whatever their types. */
export class BlockFold {
  /** By their index, which an upstream may set as high as it likes. */
  readonly #blocks = new Map<number, Json>()
  readonly #inputs = new Map<Json, string>()
  readonly #citations = new Map<Json, Json[]>()

  event(data: Json): void {
    const index = Number(data.index)
    if (data.type === 'content_block_start') this.#blocks.set(index, { ...objectOf(data.content_block) })
    else if (data.type === 'content_block_delta') {
      const block = this.#blocks.get(index)
      if (block) this.#delta(block, objectOf(data.delta))
    }
  }

  /** @param input reads the text of a block's input. @returns the blocks in their order. */
  content(input: (json: string) => unknown): Json[] {
    for (const [block, json] of this.#inputs) {
      if (json.trim() !== '') block.input = input(json)
    }
    return [...this.#blocks].sort(([left], [right]) => left - right).map(([, block]) => block)
  }

  #delta(block: Json, delta: Json): void {
    const type = textOf(delta.type)
    if (type === 'input_json_delta') {
      this.#inputs.set(block, (this.#inputs.get(block) ?? '') + textOf(delta.partial_json))
    } else if (type === 'citations_delta') this.#cite(block, objectOf(delta.citation))
    else DELTAS.get(type)?.(block, delta)
  }

  #cite(block: Json, citation: Json): void {
    const citations = this.#citations.get(block) ?? listOf(block.citations)
    this.#citations.set(block, citations)
    block.citations = citations
    citations.push(citation)
  }
}

const DELTAS = new Map<string, (block: Json, delta: Json) => void>([
  ['text_delta', (block, delta) => append(block, 'text', delta)],
  ['thinking_delta', (block, delta) => append(block, 'thinking', delta)],
  // One, before the block's end; a later one replaces it.
  ['signature_delta', (block, delta) => Object.assign(block, { signature: delta.signature })],
  // It carries the whole value, null for one that failed.
  ['compaction_delta', (block, { type: _type, ...value }) => Object.assign(block, value)],
])

function append(block: Json, member: string, delta: Json): void {
  block[member] = textOf(block[member]) + textOf(delta[member])
}
