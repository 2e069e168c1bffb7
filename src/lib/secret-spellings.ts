import { joinBytes } from './byte-edits.ts'
import { TextSearch } from './secret-search.ts'

const REDACTED = '[redacted]'
/** A shorter encoding of a secret may well be another text. */
const SHORTEST_ENCODED = 8
/**
 * A shorter secret is cut out of errors alone: servers without keys of their own are given words such as `none`, which
 * answers contain as well. Keys of vendors have 20 characters and more.
 */
const SHORTEST_IN_ANSWERS = 16

/** A credential, of which the secrets must not occur in anything that is sent to a caller. */
export type Secrets = { secrets: readonly string[] }

/** The forms of one credential, prepared for texts, for bytes as Latin-1 characters, and for the bytes of answers. */
interface Spellings {
  inText: RegExp | null
  inBytes: RegExp | null
  inAnswers: { search: TextSearch; inBytes: RegExp } | null
}

/** By credential, because they are expensive to make. */
const known = new WeakMap<Secrets, Spellings>()

function spellingsOf(credential: Secrets): Spellings {
  const spellings = known.get(credential)
  if (spellings) return spellings
  const made = makeSpellings(credential.secrets)
  known.set(credential, made)
  return made
}

function makeSpellings(secrets: readonly string[]): Spellings {
  const texts = spellAll(secrets)
  const long = spellAll(secrets.filter(({ length }) => length >= SHORTEST_IN_ANSWERS))
  const inAnswers = anyOf(long.map(latin1))
  return {
    inText: anyOf(texts),
    inBytes: anyOf(texts.map(latin1)),
    inAnswers: inAnswers && {
      search: new TextSearch(long.map((text) => Buffer.from(text, 'utf8'))),
      inBytes: inAnswers,
    },
  }
}

/** The UTF-8 bytes of a text, each as one character. */
const latin1 = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

/** @param texts in the order in which they are tried. @returns a pattern for them in any case; null for none. */
function anyOf(texts: readonly string[]): RegExp | null {
  const escaped = texts.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
  return escaped.length === 0 ? null : new RegExp(escaped.join('|'), 'gi')
}

/**
 * The forms in which an upstream may repeat secrets: plain, escaped in JSON, percent-encoded, in hexadecimal digits, or in
 * base64 at any position of the encoded text (`Bearer <credential>`, `<user>:<credential>`).
 * @returns the longest first, so that none is cut in the middle of another; none for an empty secret.
 */
function spellAll(secrets: readonly string[]): string[] {
  const texts = secrets.filter((secret) => secret !== '').flatMap(spell)
  const byFolded = new Map(texts.map((text) => [text.toLowerCase(), text]))
  return [...byFolded.values()].toSorted((left, right) => right.length - left.length)
}

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
  const { inText } = spellingsOf(credential)
  return inText ? text.replace(inText, REDACTED) : text
}

/** As `withoutCredential`, for the body of an error. @returns the same array when no secret occurs. */
export const redactCredential = (body: Uint8Array, credential: Secrets): Uint8Array =>
  cutOut(body, spellingsOf(credential).inBytes)

/** As `redactCredential`, for an answer or a frame of one: fast, and without short secrets. */
export function redactAnswer(bytes: Uint8Array, credential: Secrets): Uint8Array {
  const { inAnswers } = spellingsOf(credential)
  return inAnswers?.search.occursIn(bytes) ? cutOut(bytes, inAnswers.inBytes) : bytes
}

function cutOut(body: Uint8Array, spellings: RegExp | null): Uint8Array {
  if (!spellings) return body
  // Latin-1 maps every byte to one character and back, so all other bytes stay as they are.
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
  const rest = text.replace(spellings, REDACTED)
  return rest === text ? body : Buffer.from(rest, 'latin1')
}

/** Searches a stream for a credential, across chunks, without changing it. */
export class CredentialWatch {
  found = false
  readonly #search: TextSearch | null
  /** The end of the last chunk, which may be the beginning of a secret. */
  #tail: Uint8Array = new Uint8Array()

  constructor(credential: Secrets) {
    this.#search = spellingsOf(credential).inAnswers?.search ?? null
  }

  look(chunk: Uint8Array): void {
    if (this.found || !this.#search) return
    const longest = this.#search.longest
    // The chunk is searched where it lies; only its beginning is joined with the tail.
    const seam = joinBytes([this.#tail, chunk.subarray(0, longest)])
    this.found = this.#search.occursIn(seam) || this.#search.occursIn(chunk)
    this.#tail = chunk.length >= longest ? chunk.slice(-longest) : seam.slice(-longest)
  }
}
