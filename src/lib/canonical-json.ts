/**
 * The one JSON text of a value: members sorted by code unit, no space, members that are undefined left out. Made for
 * hashing and signing, in the manner of RFC 8785.
 *
 * Unpaired surrogates and NUL become U+FFFD, because Postgres refuses both in jsonb
 * (https://www.postgresql.org/docs/current/datatype-json.html). Such a text of a caller must not prevent a record from
 * being stored.
 *
 * @throws TypeError for what JSON cannot hold: NaN, infinities, bigint, functions, symbols, `undefined` in an array.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError(`${value} has no JSON form`)
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object') throw new TypeError(`a ${typeof value} has no JSON form`)
  return objectText(value as Record<string, unknown>)
}

/** Output of JSON.stringify for NUL and unpaired surrogates, or for a backslash before such letters. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/

/**
 * The members of an object as JSON, in their order and without the braces, so that texts can be joined. Characters that
 * Postgres refuses are replaced as by `canonicalJson`. Cheap enough for every call.
 */
export function membersText(value: object): string {
  const text = JSON.stringify(value)
  return (UNSTORABLE.test(text) ? canonicalJson(JSON.parse(text)) : text).slice(1, -1)
}

/** The engine's own order of strings is by code unit. */
function objectText(value: Record<string, unknown>): string {
  let text = ''
  for (const [name, source] of sortedNames(value)) {
    const member = value[source]
    if (member !== undefined) text += `${text === '' ? '' : ','}${quoted(name)}:${canonicalJson(member)}`
  }
  return `{${text}}`
}

/** Names as they are stored, in order, with the names in the value. */
function sortedNames(value: Record<string, unknown>): Array<[stored: string, source: string]> {
  const names = Object.keys(value).sort()
  if (names.every((name) => PLAIN.test(name))) return names.map((name) => [name, name])
  const pairs = names.map((name): [string, string] => [storableText(name), name])
  return pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0))
}

/** Text that needs no escape in JSON. */
const PLAIN = /^[ !#-[\]-~]*$/

const quoted = (text: string) => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(storableText(text)))

function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}
