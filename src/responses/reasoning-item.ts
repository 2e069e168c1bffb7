import type { ItemStatus, ReasoningItem } from '../wire/responses.ts'
import { DeltaWriter, type EventWriter } from './event-writer.ts'
import { newItemId } from './ids.ts'
import type { ReasoningSecret } from './reasoning-secret.ts'

interface OpenPart {
  part: { type: 'summary_text'; text: string }
  /** Where it is, as its events say it. */
  place: { item_id: string; output_index: number; summary_index: number }
  deltas: DeltaWriter
}

/**
 * An uninterrupted run of thinking while it is written. What of it can be read is told as its summary, one part for
 * each block; all of it, with the proofs of its origin, is the secret of the item.
 */
export class OpenReasoning {
  readonly item: ReasoningItem
  readonly secret: ReasoningSecret = []
  readonly #writer: EventWriter
  readonly #outputIndex: number
  readonly #origin: string | null
  readonly #seal: (secret: ReasoningSecret) => string | null
  #open: OpenPart | null = null

  /** @param origin the family that thinks, null when it is not known. @param seal see EmitterOptions. */
  constructor(
    writer: EventWriter,
    outputIndex: number,
    origin: string | null,
    seal: (secret: ReasoningSecret) => string | null,
  ) {
    this.#writer = writer
    this.#outputIndex = outputIndex
    this.#origin = origin
    this.#seal = seal
    this.item = { id: newItemId('reasoning'), type: 'reasoning', status: 'in_progress', summary: [] }
    writer.write('response.output_item.added', { output_index: outputIndex, item: this.item })
  }

  think(text: string): void {
    const open = this.#open ?? this.#openPart()
    open.part.text += text
    open.deltas.write(text)
  }

  /** Ends a block of thinking, one whose text the family kept to itself if none was told. */
  sign(signature: string): void {
    this.#remember({ text: this.#open?.part.text ?? '', signature })
    this.#closePart('completed')
  }

  /** Adds a block that only its family can open. */
  redact(data: string): void {
    this.#endUnsigned('completed')
    this.#remember({ text: '', redacted: data })
  }

  close(status: ItemStatus): void {
    this.#endUnsigned(status)
    this.item.status = status
    const sealed = this.#seal(this.secret)
    if (sealed !== null) this.item.encrypted_content = sealed
    this.#writer.write('response.output_item.done', { output_index: this.#outputIndex, item: this.item })
  }

  #remember(block: ReasoningSecret[number]): void {
    this.secret.push(this.#origin === null ? block : { ...block, origin: this.#origin })
  }

  #endUnsigned(status: ItemStatus): void {
    if (this.#open) this.#remember({ text: this.#open.part.text })
    this.#closePart(status)
  }

  #openPart(): OpenPart {
    const place = {
      item_id: this.item.id,
      output_index: this.#outputIndex,
      summary_index: this.item.summary.length,
    }
    const part = { type: 'summary_text' as const, text: '' }
    this.item.summary.push(part)
    this.#writer.write('response.reasoning_summary_part.added', { ...place, part })
    const deltas = new DeltaWriter(this.#writer, 'response.reasoning_summary_text.delta', place)
    this.#open = { part, place, deltas }
    return this.#open
  }

  #closePart(status: ItemStatus): void {
    if (!this.#open) return
    const { part, place } = this.#open
    this.#open = null
    this.#writer.write('response.reasoning_summary_text.done', { ...place, text: part.text })
    // The official types have a status here for parts that were broken off, and none for others.
    const broken = status === 'incomplete' ? { status } : {}
    this.#writer.write('response.reasoning_summary_part.done', { ...place, part, ...broken })
  }
}
