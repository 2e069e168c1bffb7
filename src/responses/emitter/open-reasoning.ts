import type { ItemStatus, ReasoningItem } from '../../wire/responses.ts'
import type { ReasoningSecret } from '../items/reasoning-seal.ts'
import type { OpenItem } from './open-item.ts'

/**
 * A run of reasoning while it is generated. Its readable text is the summary, with one part for each block. All of it,
 * with the signatures of its origin, is the secret of the item.
 */
export class OpenReasoning {
  readonly item: ReasoningItem
  readonly secret: ReasoningSecret = []
  readonly #open: OpenItem
  readonly #origin: string | null
  readonly #seal: (secret: ReasoningSecret) => string | null

  /** @param origin the family of the model; null when it is not known. @param seal see EmitterOptions. */
  constructor(open: OpenItem, origin: string | null, seal: (secret: ReasoningSecret) => string | null) {
    this.item = open.item as ReasoningItem
    this.#open = open
    this.#origin = origin
    this.#seal = seal
  }

  appendText(text: string): void {
    if (this.#open.part === null) this.#open.openPart('summary_text')
    this.#open.appendToPart(text)
  }

  /** Ends a block. Its text is empty if the family does not disclose it. */
  addSignature(signature: string): void {
    this.#addBlock({ text: this.#text ?? '', signature })
    this.#open.closePart('completed')
  }

  /** Adds a block that only its family can read. */
  addRedacted(data: string): void {
    this.#endUnsigned('completed')
    this.#addBlock({ text: '', redacted: data })
  }

  close(status: ItemStatus): void {
    this.#endUnsigned(status)
    const sealed = this.#seal(this.secret)
    this.#open.close(status, sealed === null ? {} : { encrypted_content: sealed })
  }

  /** Text of the open block; null between two blocks. */
  get #text(): string | null {
    return (this.#open.part?.text as string | undefined) ?? null
  }

  #addBlock(block: ReasoningSecret[number]): void {
    this.secret.push(this.#origin === null ? block : { ...block, origin: this.#origin })
  }

  #endUnsigned(status: ItemStatus): void {
    if (this.#text !== null) this.#addBlock({ text: this.#text })
    this.#open.closePart(status)
  }
}
