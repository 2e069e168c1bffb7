import { o200kVocabulary, TOKEN_COUNT } from './o200k-vocabulary.ts'

/**
 * The tokens of o200k_base and their ranks, as bytes and typed arrays: about 6 MB, where a map of strings takes 20 to
 * 70 (https://github.com/niieani/gpt-tokenizer and https://github.com/dqbd/tiktoken, measured), and an isolate has
 * 128 MB for all bodies.
 */
export interface Vocabulary {
  /** @returns the rank of the token that `bytes` hold from `start` to `end`, or `NO_TOKEN`. */
  rankOf(bytes: Uint8Array, start: number, end: number): number
}

/** Higher than every rank, so that a search for the smallest rank needs no special case. */
export const NO_TOKEN = 0x7fffffff

/** A power of two, and more than twice the tokens, so that a search ends after few steps. */
const SLOTS = 1 << 19
const LONG = 15
const RANK_BITS = 18

let loaded: Vocabulary | undefined

/**
 * The vocabulary, built at the first call (about 30 ms). It is built synchronously, because requests of an isolate
 * cannot share a promise.
 */
export function loadVocabulary(): Vocabulary {
  loaded ??= new HashedVocabulary(bytesOfBase64(o200kVocabulary()))
  return loaded
}

class HashedVocabulary implements Vocabulary {
  readonly #text: Uint8Array
  /** Where each token ends in the text, in the order of the tokens' bytes. */
  readonly #ends = new Uint32Array(TOKEN_COUNT)
  readonly #ranks = new Uint32Array(TOKEN_COUNT)
  /** Hash table with linear probing: the position of a token plus one, 0 for a free slot. */
  readonly #slots = new Uint32Array(SLOTS)
  #longest = 0

  constructor(contents: Uint8Array) {
    const text = new Uint8Array(contents.length * 2)
    const at = this.#readTokens(contents, text)
    this.#text = text.slice(0, this.#ends[TOKEN_COUNT - 1])
    this.#readRanks(contents, at)
    for (let token = 0; token < TOKEN_COUNT; token++) this.#place(token)
  }

  rankOf(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start
    if (length > this.#longest) return NO_TOKEN
    let slot = hash(bytes, start, end)
    for (;;) {
      const token = (this.#slots[slot] as number) - 1
      if (token < 0) return NO_TOKEN
      if (this.#equals(token, bytes, start, length)) return this.#ranks[token] as number
      slot = (slot + 1) & (SLOTS - 1)
    }
  }

  #equals(token: number, bytes: Uint8Array, start: number, length: number): boolean {
    const from = this.#start(token)
    if ((this.#ends[token] as number) - from !== length) return false
    const text = this.#text
    for (let index = 0; index < length; index++) {
      if (text[from + index] !== bytes[start + index]) return false
    }
    return true
  }

  #start(token: number): number {
    return token === 0 ? 0 : (this.#ends[token - 1] as number)
  }

  #place(token: number): void {
    const start = this.#start(token)
    const end = this.#ends[token] as number
    if (end - start > this.#longest) this.#longest = end - start
    let slot = hash(this.#text, start, end)
    while (this.#slots[slot] !== 0) slot = (slot + 1) & (SLOTS - 1)
    this.#slots[slot] = token + 1
  }

  /** @returns where the ranks begin. */
  #readTokens(contents: Uint8Array, text: Uint8Array): number {
    let at = 0
    let previous = 0
    let end = 0
    for (let token = 0; token < TOKEN_COUNT; token++) {
      const head = contents[at++] as number
      let shared = head >> 4
      let own = head & 0xf
      if (shared === LONG) shared = contents[at++] as number
      if (own === LONG) own = contents[at++] as number
      const start = end
      for (let index = 0; index < shared; index++) text[end++] = text[previous + index] as number
      for (let index = 0; index < own; index++) text[end++] = contents[at++] as number
      this.#ends[token] = end
      previous = start
    }
    return at
  }

  #readRanks(contents: Uint8Array, start: number): void {
    let pending = 0
    let bits = 0
    let at = start
    for (let token = 0; token < TOKEN_COUNT; token++) {
      for (; bits < RANK_BITS; bits += 8) pending = (pending << 8) | (contents[at++] as number)
      bits -= RANK_BITS
      this.#ranks[token] = pending >>> bits
      pending &= (1 << bits) - 1
    }
  }
}

/** FNV-1a, its upper bits folded in. */
function hash(bytes: Uint8Array, start: number, end: number): number {
  let value = 0x811c9dc5
  for (let at = start; at < end; at++) value = Math.imul(value ^ (bytes[at] as number), 0x01000193)
  return (value ^ (value >>> 15)) & (SLOTS - 1)
}

function bytesOfBase64(text: string): Uint8Array {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index)
  return bytes
}
