import { faker } from '@faker-js/faker'
import { SeededRandom } from './corpus/seeded-random.ts'
import { PHRASES } from './corpus/sentences.ts'
import type { Language } from './corpus/values.ts'

/** Texts of the kinds that models read and write, without anything sensitive, of about the given number of units. */
export type OrdinaryText = (units: number, seed: number) => string

function fill(units: number, seed: number, write: (random: SeededRandom) => string): string {
  faker.seed(seed)
  const random = new SeededRandom(seed)
  const pieces: string[] = []
  for (let length = 0; length < units; length += pieces[pieces.length - 1]?.length ?? 1)
    pieces.push(write(random))
  return pieces.join('').slice(0, units)
}

const prose: OrdinaryText = (units, seed) =>
  fill(units, seed, (random) => {
    const sentences = Array.from({ length: random.integer(2, 5) }, () =>
      random.chance(0.4) ? random.pick(PHRASES.en.fillers) : faker.hacker.phrase(),
    )
    return `${sentences.join(' ')}\n\n`
  })

const european: OrdinaryText = (units, seed) =>
  fill(
    units,
    seed,
    (random) =>
      `${random.pick(PHRASES[random.pick(['de', 'fr', 'es', 'it', 'pt', 'nl', 'pl'] as const)].fillers)} `,
  )

const eastAsian: OrdinaryText = (units, seed) =>
  fill(units, seed, (random) => random.pick(PHRASES[random.pick<Language>(['ja', 'zh'])].fillers))

const markdown: OrdinaryText = (units, seed) =>
  fill(units, seed, (random) => {
    const point = () =>
      `- **${faker.hacker.noun()}**: ${faker.hacker.phrase()} (${random.integer(1, 90)} %)\n`
    return `## ${random.integer(1, 9)}. ${faker.company.catchPhrase()}\n\n${point()}${point()}${point()}\n| ${faker.hacker.noun()} | ${random.integer(1, 9_999)} | ${random.integer(1, 99)}.${random.digits(2)} |\n\n`
  })

const source: OrdinaryText = (units, seed) =>
  fill(units, seed, (random) => {
    const [name, argument] = [random.pick(NAMES), random.pick(NAMES)]
    return [
      `export function ${name}${random.pick(NAMES)}(${argument}: string, limit = ${random.integer(1, 4096)}): number {\n`,
      `  if (${argument}.length > limit) throw new RangeError(\`${faker.hacker.ingverb()} \${${argument}}\`)\n`,
      `  const ${name} = this.#${random.pick(NAMES)}.get(${argument}) ?? { count: 0, at: Date.now() }\n`,
      `  return ${name}.count * 0x${random.characters('0123456789abcdef', 4)} + ${random.integer(1, 99)} // ${faker.hacker.phrase()}\n}\n\n`,
    ].join('')
  })

const NAMES = [
  'stream',
  'Buffer',
  'entry',
  'Index',
  'cursor',
  'Policy',
  'segment',
  'Window',
  'digest',
  'Offset',
]

const json: OrdinaryText = (units, seed) =>
  fill(
    units,
    seed,
    (random) =>
      `${JSON.stringify({
        id: faker.string.uuid(),
        created: faker.date.past({ refDate: '2024-06-01T00:00:00Z' }).toISOString(),
        title: faker.commerce.productName(),
        price: Number(faker.commerce.price()),
        tags: [faker.hacker.noun(), faker.hacker.adjective()],
        stock: random.integer(0, 5_000),
        description: faker.commerce.productDescription(),
      })}\n`,
  )

const logs: OrdinaryText = (units, seed) =>
  fill(
    units,
    seed,
    (random) =>
      `2024-05-${random.padded(1, 28, 2)}T${random.padded(0, 23, 2)}:${random.padded(0, 59, 2)}:${random.padded(0, 59, 2)}.${random.digits(3)}Z ${random.pick(['INFO', 'WARN'])} [worker-${random.integer(1, 8)}] ${faker.hacker.ingverb()} ${faker.hacker.noun()} duration=${random.integer(1, 900)}ms status=${random.pick(['200', '204', '404'])} trace=${faker.string.hexadecimal({ length: 32, prefix: '', casing: 'lower' })}\n`,
  )

export const ORDINARY_TEXTS = {
  prose,
  european,
  eastAsian,
  markdown,
  source,
  json,
  logs,
} as const satisfies Record<string, OrdinaryText>
