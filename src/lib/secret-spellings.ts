import { joinBytes } from './byte-edits.ts'
import { TextSearch } from './secret-search.ts'

const MARK = new TextEncoder().encode('[redacted]')
/** Shorter secrets are not searched: cutting out single letters protects nothing. */
const SHORTEST = 2
/** A shorter encoding of a secret may well be another text. */
const SHORTEST_ENCODED = 8
/**
 * A shorter secret is cut out of errors alone: servers without keys of their own are given words such as `none`, which
 * answers contain as well. Keys of vendors have 20 characters and more.
 */
const SHORTEST_IN_ANSWERS = 16

/** A credential, of which the secrets must not occur in anything that is sent to a caller. */
export type Secrets = { secrets: readonly string[] }

/** The forms of one credential: all of them, and those that are cut out of answers. */
interface Spellings {
  all: TextSearch
  long: TextSearch
}

/** Spellings cached for each list of secrets, because computing them is expensive. */
const known = new WeakMap<readonly string[], Spellings>()

function spellingsOf({ secrets }: Secrets): Spellings {
  const spellings = known.get(secrets)
  if (spellings) return spellings
  const made = makeSpellings(secrets)
  known.set(secrets, made)
  return made
}

const makeSpellings = (secrets: readonly string[]): Spellings => ({
  all: searchFor(secrets),
  long: searchFor(secrets.filter(({ length }) => length >= SHORTEST_IN_ANSWERS)),
})

function searchFor(secrets: readonly string[]): TextSearch {
  const texts = [...new Set(secrets.flatMap(spell))].map((text) => Buffer.from(text, 'utf8'))
  return new TextSearch(texts.filter(({ length }) => length >= SHORTEST))
}

/**
 * The forms in which an upstream may repeat secrets: plain, escaped in JSON, percent-encoded, in hexadecimal digits, or in
 * base64 at any position of the encoded text (`Bearer <credential>`, `<user>:<credential>`).
 */
function spell(secret: string): string[] {
  const inHex = Buffer.from(secret, 'utf8').toString('hex')
  const encoded = [...inJson(secret), ...inPercent(secret), ...inBase64(secret), inHex]
  return [secret, ...encoded.filter(({ length }) => length >= SHORTEST_ENCODED)]
}

/** Libraries differ in the characters that they escape without need. */
function inJson(text: string): string[] {
  const plain = JSON.stringify(text).slice(1, -1)
  const escaped = (characters: RegExp) =>
    plain.replace(characters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const forms = [
    plain,
    escaped(/[^\0-\x7f]/g),
    escaped(/[<>&\u2028\u2029]/g),
    escaped(/[^\0-\x7f]|[<>&'+`]/g),
  ]
  return forms.flatMap((each) => [each, each.replaceAll('/', '\\/')])
}

function inPercent(text: string): string[] {
  // `encodeURI` throws for a lone surrogate.
  const wellFormed = text.toWellFormed()
  const form = new URLSearchParams({ text }).toString().slice('text='.length)
  return [encodeURI(wellFormed), encodeURIComponent(wellFormed), form]
}

/** Three bytes become four characters. The first and the last one may hold bits of the neighbouring bytes. */
function inBase64(text: string): string[] {
  const source = Buffer.from(text, 'utf8')
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), source])
    const start = Math.ceil((before * 8) / 6)
    const end = Math.floor((bytes.length * 8) / 6)
    const standard = bytes.toString('base64').slice(start, end)
    return [standard, standard.replaceAll('/', '\\/'), bytes.toString('base64url').slice(start, end)]
  })
}

/** Cuts the secrets of the gateway's credential out of a text, such as the value of a header. */
export function withoutCredential(text: string, credential: Secrets): string {
  const bytes = Buffer.from(text, 'utf8')
  const rest = redactCredential(bytes, credential)
  return rest === bytes ? text : Buffer.from(rest).toString('utf8')
}

/** `withoutCredential` for the body of an error. @returns the same array when no secret occurs. */
export const redactCredential = (body: Uint8Array, credential: Secrets): Uint8Array =>
  cutOut(body, spellingsOf(credential).all)

/** `redactCredential` for an answer or a frame of an answer: short secrets are not searched. */
export const redactAnswer = (bytes: Uint8Array, credential: Secrets): Uint8Array =>
  cutOut(bytes, spellingsOf(credential).long)

/** `redactAnswer` for a JSON value. @returns the same value when no secret occurs. */
export function redactJson<Value>(value: Value, credential: Secrets): Value {
  if (credential.secrets.length === 0) return value
  const bytes = new TextEncoder().encode(JSON.stringify(value))
  const rest = redactAnswer(bytes, credential)
  return rest === bytes ? value : JSON.parse(new TextDecoder().decode(rest))
}

function cutOut(body: Uint8Array, search: TextSearch): Uint8Array {
  if (!search.occursIn(body)) return body
  const pieces: Uint8Array[] = []
  let from = 0
  for (const { start, end } of search.placesIn(body)) {
    pieces.push(body.subarray(from, start), MARK)
    from = end
  }
  return joinBytes([...pieces, body.subarray(from)])
}

/** Searches a stream for a credential, across chunks, without changing it. */
export class CredentialWatch {
  found = false
  readonly #search: TextSearch
  /** The end of the last chunk, which may be the beginning of a secret. */
  #tail: Uint8Array = new Uint8Array()

  constructor(credential: Secrets) {
    this.#search = spellingsOf(credential).long
  }

  look(chunk: Uint8Array): void {
    if (this.found) return
    const longest = this.#search.longest
    // The chunk is searched where it lies; only its beginning is joined with the tail.
    const seam = joinBytes([this.#tail, chunk.subarray(0, longest)])
    this.found = this.#search.occursIn(seam) || this.#search.occursIn(chunk)
    this.#tail = chunk.length >= longest ? chunk.slice(-longest) : seam.slice(-longest)
  }
}
