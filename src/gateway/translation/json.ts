/** Reading parsed bodies of which only the syntax is known. */
export type Json = Record<string, unknown>

export const objectOf = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
export const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.map(objectOf) : [])
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
export const isPresent = (value: unknown): boolean => value !== undefined && value !== null

/** The given members that have a value; for bodies that must not carry `undefined` or null where none was sent. */
export function present(members: Json): Json {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isPresent(value)))
}
