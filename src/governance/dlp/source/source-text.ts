import { joinBytes } from '../../../lib/byte-edits.ts'
import { type JsonText, offsetOf, readJsonText } from '../../../lib/json-text.ts'

interface Piece {
  source: Uint8Array
  text: JsonText
  /** Units of this piece that were taken. */
  taken: number
}

/** Source of a text that arrived and was not decided about yet, unit for unit beside the text itself. */
export class SourceText {
  #pieces: Piece[] = []
  /** Pieces before this one were taken. */
  #first = 0
  /** Source bytes that were not taken. */
  length = 0

  /** @param source contents of a JSON string; copied, because it may have to outlive its frame. @returns its text. */
  push(source: Uint8Array): string {
    const kept = source.slice()
    const text = readJsonText(kept)
    if (text.text.length > 0) {
      this.#pieces.push({ source: kept, text, taken: 0 })
      this.length += kept.length
    }
    return text.text
  }

  /** Takes the next units off. @returns their source. */
  take(units: number): Uint8Array {
    const taken: Uint8Array[] = []
    for (let left = units; left > 0; ) {
      const piece = this.#pieces[this.#first]
      if (!piece) throw new Error('more units than there are')
      const count = Math.min(left, piece.text.text.length - piece.taken)
      const from = offsetOf(piece.text, piece.taken)
      piece.taken += count
      const part = piece.source.subarray(from, offsetOf(piece.text, piece.taken))
      taken.push(part)
      this.length -= part.length
      if (piece.taken === piece.text.text.length) this.#first++
      left -= count
    }
    // Not one by one: a text that was held for long lies in very many pieces.
    if (this.#first * 2 > this.#pieces.length) {
      this.#pieces = this.#pieces.slice(this.#first)
      this.#first = 0
    }
    return joinBytes(taken)
  }
}
