import { NOT_A_FLOAT, NOT_AN_INTEGER, RedisError, SYNTAX_ERROR } from './reply.ts'

const MAX_INT64 = 2n ** 63n - 1n
const MIN_INT64 = -(2n ** 63n)

/**
 * Reads a 64-bit integer as strictly as Redis: no spaces, no plus sign, no leading zeros.
 *
 * @throws RedisError with `message` if it is none
 */
export function parseInt64(text: string, message = NOT_AN_INTEGER): bigint {
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) throw new RedisError(message)
  const value = BigInt(text)
  if (!isInt64(value)) throw new RedisError(message)
  return value
}

/** Whether a bigint fits 64 bits with a sign. */
export function isInt64(value: bigint): boolean {
  return value >= MIN_INT64 && value <= MAX_INT64
}

/** Reads an integer that is used as a count, an index or a time; exact up to 2^53, which is enough for those. */
export function parseInteger(text: string, message = NOT_AN_INTEGER): number {
  return Number(parseInt64(text, message))
}

/** An integer reply: a number where that is exact, else a bigint. */
export function integerReply(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

/**
 * Reads a float, `inf` and `-inf` included.
 *
 * @throws RedisError with `message` for anything else, NaN included
 */
export function parseFloat64(text: string, message = NOT_A_FLOAT): number {
  if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw new RedisError(message)
  return Number(text)
}

/**
 * Writes a float as Redis 7.2 and later do: the shortest digits that read back the same, with an exponent only
 * outside 10^-4 to 10^17. Redis 7.0 prints up to 17 digits instead; the values are the same.
 */
export function formatFloat(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : value < 0 ? '-inf' : 'nan'
  if (Object.is(value, -0)) return '-0'
  const [digits = '', exponent = '0'] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power < -4 || power >= 17)
    return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
  return String(value)
}

/** The end of a score range: `5`, `(5`, `-inf`, `+inf`. */
export interface ScoreBound {
  readonly value: number
  readonly exclusive: boolean
}

/** @throws RedisError for anything that is no score bound */
export function parseScoreBound(text: string): ScoreBound {
  const exclusive = text.startsWith('(')
  const number = exclusive ? text.slice(1) : text
  // C's strtod, which Redis uses here, reads an empty text as 0.
  const value = number === '' ? 0 : parseFloat64(number, 'ERR min or max is not a float')
  return { value, exclusive }
}

/** A range of indexes, from the end where they are negative. */
export interface IndexRange {
  readonly first: number
  readonly last: number
}

/** @throws RedisError if one of them is no integer. Redis finds that before it looks at the key. */
export function parseIndexRange(start: string, stop: string): IndexRange {
  return { first: parseInteger(start), last: parseInteger(stop) }
}

/** The half-open slice of a list of that length that a range stands for. */
export function sliceOf(length: number, { first, last }: IndexRange): [from: number, to: number] {
  const from = first < 0 ? Math.max(0, length + first) : first
  const to = (last < 0 ? length + last : Math.min(last, length - 1)) + 1
  return [from, Math.max(from, to)]
}

/** Reads the `LIMIT offset count` that follows `position`; a negative count means all. */
export function parseLimit(words: string[], position: number): { offset: number; count: number } {
  const [offset, count] = [words[position + 1], words[position + 2]]
  if (offset === undefined || count === undefined) throw new RedisError(SYNTAX_ERROR)
  return { offset: parseInteger(offset), count: parseInteger(count) }
}
