const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * Random base62 text. Rejects the bytes that would make some characters more likely than others.
 * @param length characters; 22 carry about 131 bits, 43 carry 256.
 */
export function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length + 8))) {
      if (byte < 248 && text.length < length) text += ALPHABET[byte % 62]
    }
  }
  return text
}

/** An id of a prefix for its kind, such as `call_…` or `req_…`, and 131 random bits. */
export function newId(prefix: string): string {
  return `${prefix}_${randomBase62(22)}`
}
