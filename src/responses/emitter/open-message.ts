import { textOf } from '../../gateway/protocols/json.ts'
import type { ItemStatus, UrlCitation } from '../../wire/responses.ts'
import { CodePoints } from './code-points.ts'
import type { OpenItem } from './open-item.ts'

/** A message of the model while it is generated. */
export class OpenMessage {
  readonly #open: OpenItem
  /** Places in the text of the open part. */
  #points = new CodePoints()

  constructor(open: OpenItem) {
    this.#open = open
  }

  /** Appends to the open part of this type. Another type begins another part. */
  appendText(type: 'output_text' | 'refusal', text: string): void {
    if (this.#open.part?.type !== type) {
      this.#open.closePart('completed')
      this.#open.openPart(type)
      this.#points = new CodePoints()
    }
    this.#points.add(text)
    this.#open.appendToPart(text)
  }

  /**
   * Annotates the last `length` UTF-16 units of the open part with their source. Sources without a URL are left out: they
   * are files at the vendor, which this surface cannot reference.
   */
  addCitation(citation: Record<string, unknown>, length: number): void {
    const { part } = this.#open
    if (part?.type !== 'output_text' || typeof citation.url !== 'string') return
    const from = Math.max(0, this.#points.units - length)
    this.#open.annotate(this.#urlCitation(citation, from))
  }

  close(status: ItemStatus): void {
    this.#open.close(status)
  }

  /**
   * The official service counts characters as Python does, in code points, and its examples use the indexes as bounds of
   * a slice (https://platform.openai.com/docs/guides/tools-web-search).
   */
  #urlCitation(citation: Record<string, unknown>, from: number): UrlCitation {
    return {
      type: 'url_citation',
      start_index: this.#points.before(from),
      end_index: this.#points.before(this.#points.units),
      url: textOf(citation.url),
      title: textOf(citation.title),
    }
  }
}
