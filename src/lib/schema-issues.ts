/** The members of a zod issue that messages need. */
export interface SchemaIssue {
  path: PropertyKey[]
  message: string
  code?: string | undefined
}

/**
 * Why a member does not fit, as text that follows its name. Zod reports a missing member as one of the wrong type.
 * @param sent the value that was checked.
 */
export function issueReason({ path, code, message }: SchemaIssue, sent: unknown): string {
  const value = path.reduce((held: unknown, name) => (held as Record<PropertyKey, unknown>)?.[name], sent)
  return code === 'invalid_type' && path.length > 0 && value === undefined ? 'is required' : message
}
