import { joinBytes } from '../../lib/byte-edits.ts'
import { type JsonText, offsetOf, readJsonText } from '../../lib/json-text.ts'

interface Piece {
  source: Uint8Array
  text: JsonText
  /** Units of this piece that were taken off. */
  taken: number
}

/** The source bytes of a text that is held back, unit for unit beside the text itself. */
export class SourceText {
  #pieces: Piece[] = []
  /** Index of the first piece with units left. */
  #first = 0
  /** Source bytes that are left. */
  length = 0

  /** @param source contents of a JSON string; copied, because it may outlive its frame. @returns its text. */
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
    // Dropped in halves, because a text that was held back for long has very many pieces.
    if (this.#first * 2 > this.#pieces.length) {
      this.#pieces = this.#pieces.slice(this.#first)
      this.#first = 0
    }
    return joinBytes(taken)
  }
}
