/** What zod finds wrong with a value, as far as messages need it. */
export interface SchemaIssue {
  path: PropertyKey[]
  message: string
  code?: string | undefined
}

/**
 * Why a member does not fit, in words that follow its name. Zod tells of a missing member as of one with the wrong type.
 * @param sent the value that was checked.
 */
export function issueReason({ path, code, message }: SchemaIssue, sent: unknown): string {
  const value = path.reduce((held: unknown, name) => (held as Record<PropertyKey, unknown>)?.[name], sent)
  return code === 'invalid_type' && path.length > 0 && value === undefined ? 'is required' : message
}
