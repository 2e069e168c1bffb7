import { originalStart, type Reading, readingIndex } from '../scan/reading.ts'
import { isWordAt } from './characters.ts'

/** Units of the original before a value that are searched for context words. */
const CONTEXT_LENGTH = 100

/**
 * The words before places of a reading, in lower case, cached for the last place. The window is measured in the
 * original, so that a stream that keeps 128 released units has the same words as the whole text.
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
    const { text } = this.reading
    const from = this.windowStart(start)
    // `qq` keeps the rest of a cut word from matching: `bic` at the end of `Arabic`.
    const cut = from > 0 && isWordAt(text, from - 1) ? 'qq' : ''
    this.#before = cut + text.slice(from, start).toLowerCase()
    return this.#before
  }

  /** The index at which the words before a place begin. */
  windowStart(start: number): number {
    if (this.reading.starts === null) return Math.max(0, start - CONTEXT_LENGTH)
    const origin = originalStart(this.reading, start, Number.MAX_SAFE_INTEGER)
    return readingIndex(this.reading, origin - CONTEXT_LENGTH)
  }
}

const SYNTAX = /[.*+?^${}()|[\]\\]/g

/**
 * A pattern for words and phrases, separated by commas and a space each. A space in a phrase also stands for a dash, an
 * underscore, or nothing.
 */
export function contextPattern(words: string): RegExp {
  const phrases = words
    .toLowerCase()
    .replace(SYNTAX, '\\$&')
    .split(', ')
    .map((phrase) => phrase.replaceAll(' ', '[ _-]?'))
  const ascii = phrases.filter((phrase) => /^[a-z]/.test(phrase))
  const other = phrases.filter((phrase) => !/^[a-z]/.test(phrase))
  const parts = ascii.length > 0 ? [`(?:^|[^a-z0-9])(?:${ascii.join('|')})(?![a-z]{2})`] : []
  return new RegExp([...parts, ...other].join('|'))
}

/** A word right before a number that makes it an order, a build, a time or the like. */
const OTHER_NUMBER =
  /(?:^|[^a-z])(?:order|invoice|tracking|ticket|serial|sku|part|model|batch|lot|case|request|trace|span|session|transaction|txn|reference|ref|timestamp|ts|build|version|revision|commit|hash|checksum|uuid|guid|isbn|issn|ean|upc|gtin|barcode|product|item|article|po|awb|shipment|parcel|container|row|line|offset|bytes|size|epoch|unix|nonce|seed|count|total|sum|job|run|event|message|msg|issue|bug|pr|rev|doi|pmid|arxiv|bestellung|rechnung|auftrag|commande|facture|pedido|factura|fattura|snowflake|confirmation|booking|reservation|receipt|population|revenue|isbn|ean|account|user|customer|passport|licen[cs]e|resident|visa)(?:[ _-]?(?:numbers?|num|no|nr|ids?|code|key|at|of))?(?: on file)?[ "'.)]{0,3}(?:is|was|=|:|#|are)?[ "'#:=([]{0,4}$/

/** Whether the words before a number make it another kind of number, such as an order, a build or a time. */
export function isOtherNumber(before: string): boolean {
  const nearest = before.slice(-48)
  return OTHER_NUMBER.test(nearest) || FIELD_OF_IDENTIFIER.test(nearest)
}

/** The name of a field before its value. */
const LABEL = /[\w-]{1,40}["']?\s?[=:]\s?["']?$/

/** Milliseconds since 1970, from 2017 to 2030: programs write them more often than anything else of 13 digits. */
export function isTimestamp(number: string): boolean {
  return number.length === 13 && number >= '1500000000000' && number < '1900000000000'
}

/**
 * Whether the lines before, from `from` on, have numbers written and labelled as this one, none of which passes the
 * check. Then this number is of their column, and passes by chance.
 */
export function isOfOtherColumn(
  text: string,
  from: number,
  start: number,
  number: string,
  validate: (digits: string) => boolean,
): boolean {
  const window = text.slice(from, start)
  const line = window.lastIndexOf('\n')
  if (line <= 0) return false
  const label = LABEL.exec(window)?.[0] ?? ''
  const bounded = label === '' ? '(?<![\\w.=:-])' : `(?<![\\w-])${label.replace(SYNTAX, '\\$&')}`
  const form = number.replaceAll('./', '\\.').replace(/\d/g, '\\d').replace(/\s+/g, '\\s{1,3}')
  const others = window.slice(0, line).match(columnPattern(`${bounded}${form}(?![\\w-])`))
  return others !== null && !others.some((other) => validate(other.replace(/\D/g, '')))
}

let lastColumn = /(?!)/g

/** Compiled once for the numbers of a column, which are all looked for in the same form. */
function columnPattern(source: string): RegExp {
  if (lastColumn.source !== source) lastColumn = new RegExp(source, 'g')
  return lastColumn
}

/** The label of a field named `id`. */
const FIELD_OF_IDENTIFIER = /(?:^|[{,;("'\n])\s{0,4}_?id["']?[ "':=]{1,4}$/
