/** A pseudo-random source (mulberry32): a failing body can be made again from its seed. */
export function randomSource(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const NUMBERS = ['0', '-0', '1', '1.0', '1e3', '1E+400', '-1.50e-7', '12345678901234567890', '0.1000']
const STRINGS = [
  '""',
  '"text"',
  '"\\u00e9\\/\\\\"',
  '"é 🦉 \u2028"',
  '"\\ud83e\\udd89"',
  '"\\ud800 alone"',
  '"{\\"model\\":\\"other\\"}"',
  '"data: [DONE]"',
  '"\\u0000\\n\\t"',
  '"hg_looks_like_a_key"',
  '"\u007f"',
]
const NAMES = [
  '"x"',
  '"é"',
  '"\\u0078_y"',
  '""',
  '"__proto__"',
  '"usage"',
  '"metadata"',
  '"model"',
  '"stream"',
  '"a b"',
]

/** JSON text as hardly any client writes it: odd spaces, odd numbers, escapes, names that mean something elsewhere. */
export class JsonText {
  readonly #random: () => number
  readonly #spaces: readonly string[]

  /** @param spaces that may stand between tokens; inside an event stream there is no line break among them. */
  constructor(random: () => number, spaces: readonly string[] = ['', '', '', ' ', '\n', '\r\n\t', '   ']) {
    this.#random = random
    this.#spaces = spaces
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item
  }

  space(): string {
    return this.pick(this.#spaces)
  }

  value(depth = 0): string {
    const kind = depth > 3 ? this.pick([0, 1, 2]) : this.pick([0, 1, 2, 3, 4])
    if (kind === 0) return this.pick(NUMBERS)
    if (kind === 1) return this.pick(STRINGS)
    if (kind === 2) return this.pick(['true', 'false', 'null'])
    const length = this.pick([0, 1, 2, 5])
    const spaced = (text: string) => this.space() + text + this.space()
    const items = Array.from({ length }, (_, index) =>
      kind === 3
        ? spaced(this.value(depth + 1))
        : spaced(this.member(this.#name(index), this.value(depth + 1))),
    )
    const inside = items.length === 0 ? this.space() : items.join(',')
    return kind === 3 ? `[${inside}]` : `{${inside}}`
  }

  /** `"name" : value`, spaced at random. @param name with its quotes. */
  member(name: string, value: string): string {
    return `${name}${this.space()}:${this.space()}${value}`
  }

  /** The members in a random order. */
  shuffle<Item>(items: readonly Item[]): Item[] {
    return items
      .map((item) => ({ item, at: this.#random() }))
      .sort((left, right) => left.at - right.at)
      .map(({ item }) => item)
  }

  /** Names inside one object differ. */
  #name(index: number): string {
    return `${this.pick(NAMES).slice(0, -1)}${index}"`
  }
}
