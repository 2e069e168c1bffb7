import { textOf } from '../../gateway/protocols/json.ts'
import type { ItemStatus, OutputTextPart, UrlCitation } from '../../wire/responses.ts'
import type { OpenItem } from './open-item.ts'

/** A message of the model while it is generated. */
export class OpenMessage {
  readonly #open: OpenItem

  constructor(open: OpenItem) {
    this.#open = open
  }

  /** Appends to the open part of this type. Another type begins another part. */
  appendText(type: 'output_text' | 'refusal', text: string): void {
    if (this.#open.part?.type !== type) {
      this.#open.closePart('completed')
      this.#open.openPart(type)
    }
    this.#open.appendToPart(text)
  }

  /**
   * Annotates the last `length` UTF-16 units of the open part with their source. Sources without a URL are left out: they
   * are files at the vendor, which this surface cannot reference.
   */
  addCitation(citation: Record<string, unknown>, length: number): void {
    const { part } = this.#open
    if (part?.type !== 'output_text' || typeof citation.url !== 'string') return
    const { text } = part as unknown as OutputTextPart
    this.#open.annotate(urlCitation(citation, text, Math.max(0, text.length - length)))
  }

  close(status: ItemStatus): void {
    this.#open.close(status)
  }
}

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
