const DIGITS = '0123456789'
const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const UPPER = LOWER.toUpperCase()

/** Sets of characters that values are made of. */
export const ALPHABETS = {
  digits: DIGITS,
  upper: UPPER,
  lower: LOWER,
  alphanumeric: DIGITS + UPPER + LOWER,
  upperAlphanumeric: DIGITS + UPPER,
  hexadecimal: `${DIGITS}abcdef`,
  base64: `${UPPER}${LOWER}${DIGITS}+/`,
  base64url: `${UPPER}${LOWER}${DIGITS}-_`,
} as const

/** Random numbers that are the same on every machine for the same seed. Not for secrets. */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A number from 0 up to but not including 1: a 32-bit Weyl sequence, its bits mixed twice by multiplication. */
  fraction(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0
    let bits = this.#state
    bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad)
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97)
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32
  }

  /** A whole number from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1))
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  /** @throws when there is nothing to pick from. */
  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.integer(0, items.length - 1)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }

  characters(alphabet: string, count: number): string {
    let text = ''
    for (let at = 0; at < count; at++) text += alphabet.charAt(this.integer(0, alphabet.length - 1))
    return text
  }

  digits(count: number): string {
    return this.characters(DIGITS, count)
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.integer(0, 255))
  }

  /** A whole number from `low` to `high`, with leading zeros up to `width` digits. */
  padded(low: number, high: number, width: number): string {
    return String(this.integer(low, high)).padStart(width, '0')
  }

  /**
   * Fills a form: `#` is any digit, `%` a digit from 1 to 9, `@` a capital letter,
   * `[abc]` one of the characters listed, all else itself.
   */
  fill(form: string): string {
    return form.replace(/\[([^\]]+)\]|[#%@]/g, (token: string, listed: string | undefined) => {
      if (listed !== undefined) return this.characters(listed, 1)
      if (token === '#') return this.digits(1)
      return token === '%' ? this.characters('123456789', 1) : this.characters(UPPER, 1)
    })
  }
}
