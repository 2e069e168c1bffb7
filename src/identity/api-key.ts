import { createToken, parseToken } from './secret-token.ts'

const PREFIX = 'hg'

/**
 * Makes a new API key, `hg_<id>_<secret><checksum>`.
 * @returns `id`, which is public and names the key in lists and audit records, and `key`, which its owner gets once and
 * which is never stored.
 */
export function createApiKey(): { id: string; key: string } {
  const { id, token } = createToken(PREFIX)
  return { id, key: token }
}

/** Recognizes an API key by shape and checksum. @returns the key's id, or null. */
export const parseApiKey = (text: string): { id: string } | null => parseToken(PREFIX, text)
