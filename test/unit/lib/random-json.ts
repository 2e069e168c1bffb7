import type { SeededRandom } from './seeded-random.ts'

/** JSON texts as no serializer writes them: random space, escapes where none are needed, every form of number. */

const SPACES = ['', '', '', ' ', '\n', '\t', '\r\n', '  ']
const CHARACTERS = [
  'a',
  'Z',
  '0',
  ' ',
  '/',
  'é',
  'ß',
  '漢',
  '\u{1f600}',
  '\ufeff',
  '\u2028',
  '"',
  '\\',
  '\n',
  '\0',
  '\x7f',
]
const NUMBERS = [
  '0',
  '-0',
  '7',
  '-12',
  '3.25',
  '0.001',
  '1e3',
  '1E+2',
  '-2.5e-3',
  '9007199254740993',
  '1e400',
]
const SHORT_ESCAPES: Record<string, string> = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '/': '\\/' }

const space = (random: SeededRandom) => random.pick(SPACES)

/** A JSON string for `text`, with escapes chosen at random where both forms are allowed. */
export function randomSpelling(random: SeededRandom, text: string, escapes = 0.2): string {
  let spelled = ''
  for (const character of text) {
    const must = character < ' ' || character === '"' || character === '\\'
    if (must || random.chance(escapes)) spelled += escapeOf(random, character)
    else spelled += character
  }
  return `"${spelled}"`
}

function escapeOf(random: SeededRandom, character: string): string {
  const short = SHORT_ESCAPES[character]
  if (short && random.chance(0.5)) return short
  return [...Array(character.length).keys()]
    .map((index) => character.charCodeAt(index).toString(16).padStart(4, '0'))
    .map((hex) => `\\u${random.chance(0.5) ? hex.toUpperCase() : hex}`)
    .join('')
}

export function randomText(random: SeededRandom, longest: number): string {
  return Array.from({ length: random.below(longest + 1) }, () => random.pick(CHARACTERS)).join('')
}

export function randomJson(random: SeededRandom, depth: number): string {
  const kind = random.below(depth > 0 ? 7 : 5)
  if (kind === 0) return random.pick(['true', 'false', 'null'])
  if (kind === 1) return random.pick(NUMBERS)
  // An unpaired surrogate is JSON when it is escaped.
  if (kind === 2 && random.chance(0.1)) return '"\\ud83d"'
  if (kind < 5) return randomSpelling(random, randomText(random, random.chance(0.1) ? 120 : 8))
  const separator = () => `${space(random)},${space(random)}`
  const entries = Array.from({ length: random.below(4) }, () =>
    kind === 5 ? randomJson(random, depth - 1) : randomMember(random, depth),
  )
  let joined = ''
  for (const [index, entry] of entries.entries()) joined += (index > 0 ? separator() : '') + entry
  const inside = `${space(random)}${joined}${space(random)}`
  return kind === 5 ? `[${inside}]` : `{${inside}}`
}

function randomMember(random: SeededRandom, depth: number): string {
  // Few names, so that some members are given twice.
  const name = random.pick(['a', 'b', 'type', 'ключ', '', '__proto__', randomText(random, 6)])
  return `${randomSpelling(random, name)}${space(random)}:${space(random)}${randomJson(random, depth - 1)}`
}
