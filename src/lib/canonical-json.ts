/**
 * The one JSON text of a value: members sorted by code unit, no space, members that are undefined left out. Made for
 * hashing and signing, in the manner of RFC 8785.
 *
 * Unpaired surrogates and NUL become U+FFFD, because Postgres refuses both in jsonb
 * (https://www.postgresql.org/docs/current/datatype-json.html) and one such text from a caller must not be able to
 * keep a record from being stored.
 *
 * @throws TypeError for what JSON cannot hold: NaN, infinities, bigint, functions, symbols, `undefined` in an array.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return JSON.stringify(storableText(value))
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError(`${value} has no JSON form`)
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object') throw new TypeError(`a ${typeof value} has no JSON form`)
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([name, member]) => [storableText(name), member] as const)
    .sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`
}

function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}
