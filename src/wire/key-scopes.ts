/** The scopes of keys. A key without a scope is refused on the surfaces of that scope with 403. */
export const KEY_SCOPES = ['models', 'agents', 'mcp'] as const
export type KeyScope = (typeof KEY_SCOPES)[number]
