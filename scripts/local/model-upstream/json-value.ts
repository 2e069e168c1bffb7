export type JsonRecord = Record<string, unknown>

/** Whether `value` is a JSON object (not an array, not null). */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `value` as a JSON object, or an empty one when it is something else. */
export function toRecord(value: unknown): JsonRecord {
  return isRecord(value) ? value : {}
}

/** `value` as a list, or an empty one when it is something else. */
export function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** `value` as a string, or `fallback` when it is something else. */
export function toText(value: unknown, fallback = ''): string {
  return typeof value === 'string' ? value : fallback
}

/** `value` as a finite number, or undefined when it is something else. */
export function toNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/**
 * The text of a message's content: the string itself, or the text of its blocks joined by a space.
 * Both vendors name the block's text member `text`; images and other blocks have none and are skipped.
 */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return toList(content)
    .map((block) => toText(toRecord(block).text))
    .filter((text) => text !== '')
    .join(' ')
}

/** The number of characters of all strings (member names too) in a JSON value: the basis of token counts. */
export function countCharacters(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value === 'number' || typeof value === 'boolean') return 4
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + countCharacters(item), 0)
  if (!isRecord(value)) return 0
  let sum = 0
  for (const [name, member] of Object.entries(value)) sum += name.length + countCharacters(member)
  return sum
}

/** Input tokens of a text length in characters, at the usual rule of thumb of four characters per token. */
export function tokensOfCharacters(characters: number): number {
  return Math.max(1, Math.ceil(characters / 4))
}
