/** A parsed body of which only the syntax has been checked. */
export type Json = Record<string, unknown>

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)
export const objectOf = (value: unknown): Json => (isObject(value) ? value : {})
export const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.map(objectOf) : [])
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
/** The value of a number, raw or not; undefined for everything else. */
export const numberOf = (value: unknown): number | undefined => {
  if (typeof value === 'number') return value
  return isRawNumber(value) ? Number((value as { rawJSON: string }).rawJSON) : undefined
}
export const isPresent = (value: unknown): boolean => value !== undefined && value !== null

/** The entry of a table under a name from a body, which may be one that every object inherits. */
export const entryOf = <Value>(table: Readonly<Record<string, Value>>, name: string): Value | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

/** The members that have a value: a body must not carry null where the caller sent nothing. */
export function present(members: Json): Json {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isPresent(value)))
}

/** Numbers of so many digits may be inexact as JavaScript numbers. */
const MANY_DIGITS = /\d{16}/

/**
 * Parses a body. Numbers that would lose digits stay raw, so that `JSON.stringify` writes them unchanged.
 * @throws SyntaxError
 */
export function parseJson(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text)
  return JSON.parse(text, (_name, value, context?: { source?: string }) => {
    const source = context?.source
    const inexact = typeof value === 'number' && source !== undefined && String(value) !== source
    return inexact && Number.isInteger(value) && !Number.isSafeInteger(value) ? rawNumber(source) : value
  })
}

/** @returns the object in a text, or null where the text holds anything else. */
export function objectIn(text: string): Json | null {
  try {
    const value = parseJson(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

/** https://github.com/tc39/proposal-json-parse-with-source, which TypeScript's library does not declare yet. */
const extended = JSON as unknown as { rawJSON(text: string): unknown; isRawJSON(value: unknown): boolean }
const rawNumber = (text: string): unknown => extended.rawJSON(text)
/** Whether a value is a raw number: an object that keeps the source text and does not take part in arithmetic. */
export const isRawNumber = (value: unknown): boolean => extended.isRawJSON(value)
