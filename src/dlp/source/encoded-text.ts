import { Buffer } from 'node:buffer'
import { joinBytes } from '../../lib/byte-edits.ts'
import { readJsonText } from '../../lib/json-text.ts'
import type { Slices } from '../../lib/slices.ts'
import { NO_DIGIT, PADDING, SIX_BITS } from '../detectors/base64.ts'
import type { Replacement } from '../inspection.ts'
import { applyReleased, isUnchanged, type ReleasedText, type TextStream } from '../stream/text-stream.ts'
import { sourceSlices } from './source-slices.ts'

/**
 * The head of a data URL in base64. One with other parameters, or with a number in its type, is inspected as a text,
 * because values fit into these.
 */
const DATA_URL = /^data:(?![^,]*\d{9})[a-z0-9.+\\/-]*(?:;charset=[a-z0-9-]+)?;base64,/i
const DATA_URL_HEAD_BYTES = 200

const latin1 = (bytes: Uint8Array) => String.fromCharCode(...bytes)

/** Bytes of the head of a data URL in base64; 0 if there is none. @param contents of a JSON string. */
export const dataUrlHead = (contents: Uint8Array): number =>
  DATA_URL.exec(latin1(contents.subarray(0, DATA_URL_HEAD_BYTES)))?.[0].length ?? 0

/**
 * Whether base64 encodes a text. Reads up to the first byte that is not UTF-8, a slice at a time.
 * @param contents of a JSON string: base64, or a data URL of it.
 */
export function* isEncodedText(contents: Uint8Array): Slices<boolean> {
  try {
    for (const _text of decodedTexts(contents)) yield
    return true
  } catch (error) {
    if (error instanceof TypeError) return false
    throw error
  }
}

/**
 * Inspects the text that base64 encodes, and encodes it again when it is changed.
 * @param contents for which `isEncodedText` holds. @returns null when everything passes as it is.
 */
export function* encodedReplacement(contents: Uint8Array, stream: TextStream): Slices<Replacement | null> {
  const head = contents.slice(0, dataUrlHead(contents))
  const encoder = new Base64Encoder()
  let pending = ''
  let isUntouched = true
  function* take(texts: readonly ReleasedText[]): Slices<void> {
    isUntouched &&= isUnchanged(texts)
    if (texts.length > 0) yield* encoder.push(applyReleased(pending, texts))
    pending = pending.slice(texts.reduce((sum, { units }) => sum + units, 0))
  }
  for (const text of decodedTexts(contents)) {
    pending += text
    yield* take(yield* stream.pushInSlices(text))
    yield
  }
  yield* take(yield* stream.endInSlices())
  if (isUntouched) return null
  // All bytes of the encoding are new, also those of unchanged text, so none of them counts as released.
  return {
    contents: joinBytes([head, ...encoder.end()]),
    released: head.length,
    withheld: contents.length - head.length,
  }
}

/** @throws TypeError for what is not UTF-8. */
function* decodedTexts(contents: Uint8Array): Generator<string> {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const decoder = new Base64Decoder()
  for (const slice of sourceSlices(contents.subarray(dataUrlHead(contents)))) {
    yield utf8.decode(decoder.decode(readJsonText(slice).text), { stream: true })
  }
  yield utf8.decode()
}

/** Lenient, as decoders of upstreams are: takes either alphabet, line ends, and more digits after padding. */
class Base64Decoder {
  #bits = 0
  #count = 0

  decode(text: string): Uint8Array {
    const bytes = new Uint8Array(Math.ceil((text.length * 3) / 4) + 1)
    let length = 0
    for (let index = 0; index < text.length; index++) {
      const value = SIX_BITS[text.charCodeAt(index)] ?? NO_DIGIT
      if (value === PADDING) this.#count = 0
      if (value >= PADDING) continue
      this.#bits = ((this.#bits << 6) | value) & 0xffff
      this.#count += 6
      if (this.#count < 8) continue
      this.#count -= 8
      bytes[length++] = this.#bits >> this.#count
    }
    return bytes.subarray(0, length)
  }
}

/** Units that are encoded in one slice. */
const ENCODED_UNITS = 64 * 1024

/** Encodes a text in pieces, whose ends may lie inside of a pair of surrogates. */
class Base64Encoder {
  readonly #pieces: Uint8Array[] = []
  #text = ''
  #bytes: Uint8Array = new Uint8Array()

  #push(piece: string): void {
    const text = this.#text + piece
    const end = /[\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length
    this.#text = text.slice(end)
    const bytes = joinBytes([this.#bytes, Buffer.from(text.slice(0, end))])
    const whole = bytes.length - (bytes.length % 3)
    this.#write(bytes.subarray(0, whole))
    this.#bytes = bytes.slice(whole)
  }

  *push(text: string): Slices<void> {
    for (let at = 0; at < text.length; at += ENCODED_UNITS) {
      this.#push(text.slice(at, at + ENCODED_UNITS))
      if (at + ENCODED_UNITS < text.length) yield
    }
  }

  end(): Uint8Array[] {
    this.#write(joinBytes([this.#bytes, Buffer.from(this.#text)]))
    return this.#pieces
  }

  #write(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#pieces.push(Buffer.from(Buffer.from(bytes).toString('base64'), 'latin1'))
  }
}
