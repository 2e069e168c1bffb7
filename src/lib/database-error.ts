/** The database's error among the causes of an error: the one with an SQLSTATE. Null when there is none. */
export function databaseCause(error: unknown): (Error & { code: string }) | null {
  for (let current = error; current instanceof Error; current = current.cause) {
    const code = (current as Error & { code?: unknown }).code
    if (typeof code === 'string' && /^[0-9FHPX][0-9A-Z]{4}$/.test(code))
      return current as Error & { code: string }
  }
  return null
}

/** Whether a statement failed because of a value: a text that is no number or time, or one out of range. */
export const isDataException = (error: unknown): boolean =>
  databaseCause(error)?.code.startsWith('22') === true

/** Whether a statement failed because a row with its unique value exists. */
export const isUniqueViolation = (error: unknown): boolean => databaseCause(error)?.code === '23505'
