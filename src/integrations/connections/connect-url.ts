import type { Connection, Integration } from '../types.ts'

/**
 * A sentence for a caller whose account is missing or must be connected again: for `hint` of an error, and for the
 * answer of a tool.
 * @param connection null when there is none.
 */
export function connectHint(
  { displayName, authorization }: Pick<Integration, 'displayName' | 'authorization'>,
  connection: Pick<Connection, 'id' | 'displayName'> | null,
): string {
  const isByPerson = authorization.kind === 'oauth'
  const needed = isByPerson ? 'must be connected again' : 'needs a new credential'
  const what =
    connection === null
      ? `No account of ${displayName} is connected for this caller.`
      : `The account "${connection.displayName}" of ${displayName} (${connection.id}) ${needed}.`
  const how = isByPerson
    ? 'The tool platform_connect_integration gives a link for that.'
    : 'An administrator gives it.'
  return `${what} ${how}`
}
