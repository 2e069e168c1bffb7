import { originalStart, type Reading, readingIndex } from '../normalise.ts'

/** How many units of the original before a finding are searched for words that name it. */
const CONTEXT_LENGTH = 100

/**
 * The words before places of a reading, in lower case, made once for each place. The window is measured in the
 * original, so that a stream that keeps 128 released units sees the same words as the whole text.
 */
export class Surroundings {
  readonly reading: Reading
  #start = -1
  #before = ''

  constructor(reading: Reading) {
    this.reading = reading
  }

  before(start: number): string {
    if (start === this.#start) return this.#before
    this.#start = start
    this.#before = this.reading.text.slice(this.windowStart(start), start).toLowerCase()
    return this.#before
  }

  /** Where the words before a place begin. */
  windowStart(start: number): number {
    if (this.reading.starts === null) return Math.max(0, start - CONTEXT_LENGTH)
    const origin = originalStart(this.reading, start, Number.MAX_SAFE_INTEGER)
    return readingIndex(this.reading, origin - CONTEXT_LENGTH)
  }
}

/** A pattern for words and phrases; a space in one also stands for a dash, an underscore, or nothing. */
export function contextPattern(words: readonly string[]): RegExp {
  const phrases = words.map((word) =>
    word
      .toLowerCase()
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replaceAll(' ', '[ _-]?'),
  )
  const ascii = phrases.filter((phrase) => /^[a-z]/.test(phrase))
  const other = phrases.filter((phrase) => !/^[a-z]/.test(phrase))
  const parts = ascii.length > 0 ? [`(?:^|[^a-z])(?:${ascii.join('|')})(?![a-z]{2})`] : []
  return new RegExp([...parts, ...other].join('|'))
}

/** A name right before a number that says it counts or names something else. */
const OTHER_NUMBER =
  /(?:^|[^a-z])(?:order|invoice|tracking|ticket|serial|sku|part|model|batch|lot|case|request|trace|span|session|transaction|txn|reference|ref|timestamp|ts|build|version|revision|commit|hash|checksum|uuid|guid|isbn|issn|ean|upc|gtin|barcode|product|item|article|po|awb|shipment|parcel|container|row|line|offset|bytes|size|epoch|unix|nonce|seed|count|total|sum|job|run|event|message|msg|issue|bug|pr|rev|doi|pmid|arxiv|bestellung|rechnung|auftrag|commande|facture|pedido|factura|fattura|snowflake|confirmation|booking|reservation|receipt|population|revenue|isbn|ean|account|user|customer|passport|licen[cs]e|resident|visa)(?:[ _-]?(?:numbers?|num|no|nr|ids?|code|key|at|of))?(?: on file)?[ "'.)]{0,3}(?:is|was|=|:|#|are)?[ "'#:=([]{0,4}$/

/** Whether the words before say that a number is an order, a build, a time ... */
export function isOtherNumber(before: string): boolean {
  const nearest = before.slice(-48)
  return OTHER_NUMBER.test(nearest) || FIELD_OF_IDENTIFIER.test(nearest)
}

/** A field that is called just `id`. */
const FIELD_OF_IDENTIFIER = /(?:^|[{,;("'\n])\s{0,4}_?id["']?[ "':=]{1,4}$/
