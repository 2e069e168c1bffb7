const BACKSLASH = 0x5c

/** A byte order mark within a string is a character of it: without it two different names would be equal. */
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/**
 * The text of a JSON string's contents, whose escapes are valid. Short strings are decoded here: a text decoder and a
 * parser take many times as long for them.
 * @param escaped false skips the search for escapes.
 */
export function decodeString(bytes: Uint8Array, start: number, end: number, escaped = true): string {
  if (end - start > SHORT_BYTES) return decodeLong(bytes.subarray(start, end), escaped)
  let text = ''
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    if (byte >= 0x80) return decodeLong(bytes.subarray(start, end), escaped)
    if (byte !== BACKSLASH) text += String.fromCharCode(byte)
    else {
      const kind = bytes[++at] as number
      text += kind === 0x75 ? String.fromCharCode(hexadecimal(bytes, at + 1)) : (ESCAPED[kind] ?? '')
      if (kind === 0x75) at += 4
    }
  }
  return text
}

/** Entries of the table of names: a power of two. */
const NAMES = 1_024
const LONGEST_NAME_BYTES = 40
/** Cache indexed by a hash of the bytes: the last name with that hash, its bytes (`LONGEST_NAME_BYTES` for each) and its text. */
const nameBytes = new Uint8Array(NAMES * LONGEST_NAME_BYTES)
const nameLengths = new Uint8Array(NAMES)
const nameTexts: string[] = Array(NAMES).fill('')

/**
 * `decodeString` for a string without escapes that occurs in many texts, such as a member name: usually returns the text made
 * earlier for the same bytes. A new text is slow as a key, because the engine has to find the equal one first.
 */
export function decodeName(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start
  if (length > LONGEST_NAME_BYTES) return decodeString(bytes, start, end, false)
  let hash = length
  for (let at = start; at < end; at++) hash = (hash * 31 + (bytes[at] as number)) | 0
  const place = hash & (NAMES - 1)
  const known = place * LONGEST_NAME_BYTES
  let equal = nameLengths[place] === length ? 0 : -1
  while (equal >= 0 && equal < length) {
    equal = nameBytes[known + equal] === bytes[start + equal] ? equal + 1 : -1
  }
  if (equal === length) return nameTexts[place] as string
  const text = decodeString(bytes, start, end, false)
  for (let at = 0; at < length; at++) nameBytes[known + at] = bytes[start + at] as number
  nameLengths[place] = length
  nameTexts[place] = text
  return text
}

function decodeLong(contents: Uint8Array, escaped: boolean): string {
  if (escaped && contents.includes(BACKSLASH)) {
    return JSON.parse(`"${decoder.decode(contents)}"`) as string
  }
  return decoder.decode(contents)
}

const DIGIT_NINE = 0x39

/** The value of four hexadecimal digits. */
function hexadecimal(bytes: Uint8Array, start: number): number {
  let value = 0
  for (let at = start; at < start + 4; at++) {
    const byte = bytes[at] as number
    value = value * 16 + (byte <= DIGIT_NINE ? byte - 0x30 : (byte | 0x20) - 0x57)
  }
  return value
}

/** The character of an escape, indexed by the byte after the backslash (RFC 8259 section 7). */
const ESCAPED: string[] = []
for (const [letter, character] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) {
  ESCAPED[(letter as string).charCodeAt(0)] = character as string
}

/** Up to this size a text decoder takes longer than decoding byte by byte. */
const SHORT_BYTES = 48
