import type { ProviderCredential } from '../providers/credential.ts'

/** One encoding of a secret: as text, and as its UTF-8 bytes, each as one Latin-1 character. */
interface Spelling {
  text: string
  bytes: string
}

const REDACTED = '[redacted]'
/** A shorter encoding of a secret may well be another text. */
const SHORTEST_ENCODED = 8
/** By credential, because they are expensive to make. */
const known = new WeakMap<Secrets, readonly Spelling[]>()

type Secrets = Pick<ProviderCredential, 'secrets'>

/**
 * The forms in which an upstream may repeat the secrets of a credential: plain, escaped in JSON, percent-encoded, or in
 * base64 at any position of the encoded text (`Bearer <credential>`, `<user>:<credential>`).
 * @returns the longest first, so that none is cut in the middle of another; none for an empty secret.
 */
function spellingsOf(credential: Secrets): readonly Spelling[] {
  const made = known.get(credential) ?? makeSpellings(credential.secrets)
  known.set(credential, made)
  return made
}

function makeSpellings(secrets: readonly string[]): readonly Spelling[] {
  const texts = secrets.filter((secret) => secret !== '').flatMap(spell)
  return [...new Set(texts)]
    .toSorted((left, right) => right.length - left.length)
    .map((text) => ({ text, bytes: Buffer.from(text, 'utf8').toString('latin1') }))
}

function spell(secret: string): string[] {
  const encoded = [...inJson(secret), ...inPercent(secret), ...inBase64(secret)]
  return [secret, ...encoded.filter(({ length }) => length >= SHORTEST_ENCODED)]
}

/** Libraries differ in the characters that they escape without need, and in the case of the digits. */
function inJson(text: string): string[] {
  const plain = JSON.stringify(text).slice(1, -1)
  const escaped = (characters: RegExp) =>
    plain.replace(characters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const lower = [
    plain,
    escaped(/[^\0-\x7f]/g),
    escaped(/[<>&\u2028\u2029]/g),
    escaped(/[^\0-\x7f]|[<>&'+`]/g),
  ]
  const both = lower.flatMap((each) => [
    each,
    each.replace(/\\u[0-9a-f]{4}/g, (code) => `\\u${code.slice(2).toUpperCase()}`),
  ])
  return both.flatMap((each) => [each, each.replaceAll('/', '\\/')])
}

function inPercent(text: string): string[] {
  // `encodeURI` throws for a lone surrogate.
  const wellFormed = text.toWellFormed()
  const form = new URLSearchParams({ text }).toString().slice('text='.length)
  return [encodeURI(wellFormed), encodeURIComponent(wellFormed), form].flatMap((each) => [
    each,
    each.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  ])
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
  let rest = text
  for (const spelling of spellingsOf(credential)) {
    if (rest.includes(spelling.text)) rest = rest.replaceAll(spelling.text, REDACTED)
  }
  return rest
}

/** As `withoutCredential`, for a body. @returns the same array when no secret occurs. */
export function redactCredential(body: Uint8Array, credential: Secrets): Uint8Array {
  // Latin-1 maps every byte to one character and back, so all other bytes stay as they are.
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
  let rest = text
  for (const { bytes } of spellingsOf(credential)) {
    if (rest.includes(bytes)) rest = rest.replaceAll(bytes, REDACTED)
  }
  return rest === text ? body : Buffer.from(rest, 'latin1')
}

/** Searches a stream for a credential, across chunks, without changing it. */
export class CredentialWatch {
  found = false
  readonly #spellings: readonly Spelling[]
  /** The end of the last chunk, which may be the beginning of a secret. */
  #tail = ''

  constructor(credential: Secrets) {
    this.#spellings = spellingsOf(credential)
  }

  look(chunk: Uint8Array): void {
    if (this.found) return
    const text = this.#tail + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
    this.found = this.#spellings.some(({ bytes }) => text.includes(bytes))
    const longest = Math.max(0, ...this.#spellings.map(({ bytes }) => bytes.length))
    this.#tail = longest > 1 ? text.slice(1 - longest) : ''
  }
}
