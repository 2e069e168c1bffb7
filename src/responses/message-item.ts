import { textOf } from '../gateway/translation/json.ts'
import type { ItemStatus, MessageItem, OutputTextPart, RefusalPart, UrlCitation } from '../wire/responses.ts'
import { DeltaWriter, type EventWriter } from './event-writer.ts'
import { newItemId } from './ids.ts'

/** How the parts of a message are named and told. */
const PARTS = {
  output_text: { member: 'text', more: { logprobs: [] } },
  refusal: { member: 'refusal', more: {} },
} as const

type PartType = keyof typeof PARTS

interface OpenPart {
  part: OutputTextPart | RefusalPart
  /** Where it is, as its events say it. */
  place: { item_id: string; output_index: number; content_index: number }
  deltas: DeltaWriter
}

/** A message of the model while it is written. */
export class OpenMessage {
  readonly item: MessageItem
  readonly #writer: EventWriter
  readonly #outputIndex: number
  #open: OpenPart | null = null

  constructor(writer: EventWriter, outputIndex: number) {
    this.#writer = writer
    this.#outputIndex = outputIndex
    this.item = {
      id: newItemId('message'),
      type: 'message',
      status: 'in_progress',
      role: 'assistant',
      content: [],
    }
    writer.write('response.output_item.added', { output_index: outputIndex, item: this.item })
  }

  /** Adds text to the part of its kind; another kind than before begins another part. */
  say(type: PartType, text: string): void {
    if (this.#open?.part.type !== type) this.#closePart()
    const open = this.#open ?? this.#openPart(type)
    if (open.part.type === 'refusal') open.part.refusal += text
    else open.part.text += text
    open.deltas.write(text)
  }

  /**
   * Notes a source of the last `length` UTF-16 units of the text that is being written. Sources without a URL have no
   * place on this surface: theirs are files of the vendor.
   */
  cite(citation: Record<string, unknown>, length: number): void {
    const open = this.#open
    if (open?.part.type !== 'output_text' || typeof citation.url !== 'string') return
    const { annotations, text } = open.part
    const annotation = urlCitation(citation, text, Math.max(0, text.length - length))
    this.#writer.write('response.output_text.annotation.added', {
      ...open.place,
      annotation_index: annotations.length,
      annotation,
    })
    annotations.push(annotation)
  }

  close(status: ItemStatus): void {
    this.#closePart()
    this.item.status = status
    this.#writer.write('response.output_item.done', { output_index: this.#outputIndex, item: this.item })
  }

  #openPart(type: PartType): OpenPart {
    const place = {
      item_id: this.item.id,
      output_index: this.#outputIndex,
      content_index: this.item.content.length,
    }
    const part = emptyPart(type)
    this.item.content.push(part)
    this.#writer.write('response.content_part.added', { ...place, part })
    const deltas = new DeltaWriter(this.#writer, `response.${type}.delta`, place, PARTS[type].more)
    this.#open = { part, place, deltas }
    return this.#open
  }

  #closePart(): void {
    if (!this.#open) return
    const { part, place } = this.#open
    this.#open = null
    const { member, more } = PARTS[part.type]
    const whole = part.type === 'refusal' ? part.refusal : part.text
    this.#writer.write(`response.${part.type}.done`, { ...place, [member]: whole, ...more })
    this.#writer.write('response.content_part.done', { ...place, part })
  }
}

const emptyPart = (type: PartType): OutputTextPart | RefusalPart =>
  type === 'refusal'
    ? { type: 'refusal', refusal: '' }
    : { type: 'output_text', text: '', annotations: [], logprobs: [] }

/**
 * The official service counts characters as Python does, in code points, and its examples use the indexes as bounds of
 * a slice (https://platform.openai.com/docs/guides/tools-web-search).
 */
function urlCitation(citation: Record<string, unknown>, text: string, from: number): UrlCitation {
  const start = codePoints(text.slice(0, from))
  return {
    type: 'url_citation',
    start_index: start,
    end_index: start + codePoints(text.slice(from)),
    url: textOf(citation.url),
    title: textOf(citation.title),
  }
}

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
