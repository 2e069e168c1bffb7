import { parseAccept } from 'hono/utils/accept'

/**
 * The media types of one resource that a client does not take, by its header Accept.
 * @param types in lower case; each has to be named itself, since a range such as `text/*` does not show that the client
 *   reads a stream of events. A quality of 0 refuses a type (RFC 9110, 12.4.2).
 */
export function missingTypes(accept: string | undefined, types: readonly string[]): string[] {
  const accepted = parseAccept(accept ?? '').filter(({ q }) => q > 0)
  const named = new Set(accepted.map(({ type }) => type.toLowerCase()))
  return types.filter((type) => !named.has(type))
}
