import { joinBytes } from '../../lib/byte-edits.ts'
import { type JsonText, offsetOf, readJsonText } from '../../lib/json-text.ts'

interface Piece {
  source: Uint8Array
  text: JsonText
  /** Units of this piece that were taken. */
  taken: number
}

/** Source of a text that arrived and was not decided about yet, unit for unit beside the text itself. */
export class SourceText {
  readonly #pieces: Piece[] = []

  /** @param source contents of a JSON string; copied, because it may have to outlive its frame. @returns its text. */
  push(source: Uint8Array): string {
    const kept = source.slice()
    const text = readJsonText(kept)
    if (text.text.length > 0) this.#pieces.push({ source: kept, text, taken: 0 })
    return text.text
  }

  /** Takes the next units off. @returns their source. */
  take(units: number): Uint8Array {
    const taken: Uint8Array[] = []
    for (let left = units; left > 0; ) {
      const piece = this.#pieces[0]
      if (!piece) throw new Error('more units than there are')
      const count = Math.min(left, piece.text.text.length - piece.taken)
      const from = offsetOf(piece.text, piece.taken)
      piece.taken += count
      taken.push(piece.source.subarray(from, offsetOf(piece.text, piece.taken)))
      if (piece.taken === piece.text.text.length) this.#pieces.shift()
      left -= count
    }
    return joinBytes(taken)
  }

  /** Source bytes that were not taken. */
  get length(): number {
    return this.#pieces.reduce(
      (total, { source, text, taken }) => total + source.length - offsetOf(text, taken),
      0,
    )
  }
}
