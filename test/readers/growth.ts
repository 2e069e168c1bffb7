import type { SeededRandom } from '../dlp/corpus/seeded-random.ts'
import { growthOf } from '../dlp/timing.ts'
import { describeBacktracking } from '../harness/backtracking.ts'
import type { StepCounter } from '../harness/counted-steps.ts'
import { grown, randomText } from '../harness/step-search.ts'
import type { ListReader, Make, TextReader } from './reader.ts'

/** A search for input on which a reader takes more steps than its length explains. */

/** An input of a size, in characters or elements. */
export interface Trial {
  name: string
  /** Reads the input of a size, which is made beforehand. */
  reading: (size: number) => () => unknown
}

/** Fourfold input may take this many times as many steps: linear work takes 4, squared work 16. */
const MOST_GROWTH = 6
/** Steps for each character or element of the smallest size that need no explanation: some have a limit there. */
const UNEXPLAINED = 10
/** Steps for each character, and for each element. */
const MOST_FOR_CHARACTER = 200
const MOST_FOR_ELEMENT = 3_000

export interface Search {
  /** Sizes of the smaller text. Below a limit, what has one grows faster, so that a larger size decides then. */
  textSizes: readonly number[]
  listSizes: readonly number[]
  /** Whether every size decides, and not only the first at which the steps do not grow too fast. */
  everySize: boolean
}

/** A few sizes, for each change. */
export const SHORT: Search = {
  textSizes: [1_000, 4_000, 16_000],
  listSizes: [60, 240, 960],
  everySize: false,
}
export const LONG: Search = { textSizes: [1_000, 16_000], listSizes: [60, 4_000], everySize: true }

/** Each fragment over and over, alone and with another behind it. */
export const simpleTexts = ({ name, fragments, read }: TextReader): Trial[] =>
  fragments.flatMap((fragment) =>
    ['', ' ', '<'].map((end) => textTrial(name, read, grown('', [[fragment + end, 1]], 'x'))),
  )

export const knownTexts = ({ name, known = [], read }: TextReader): Trial[] =>
  known.map((text, index) => textTrial(name, read, { name: `known ${index}`, text }))

export const randomTextTrial = (random: SeededRandom, { name, fragments, read }: TextReader): Trial =>
  textTrial(name, read, randomText(random, fragments))

function textTrial(
  name: string,
  read: TextReader['read'],
  of: { name: string; text: (units: number) => string },
): Trial {
  return {
    name: `${name}: ${of.name}`,
    reading(size) {
      const text = of.text(size)
      return () => read(text)
    },
  }
}

/** A list of each kind of element. */
export const simpleLists = ({ name, lists, read }: ListReader): Trial[] =>
  Object.entries(lists).flatMap(([path, makes]) =>
    makes.map((make, kind) => listTrial(`${name}: ${path} of ${kind}`, read, [{ path, makes: [make] }])),
  )

/** Builds one or two lists that grow together, each with elements of one to three kinds in turn. */
export function randomListTrial(random: SeededRandom, { name, lists, read }: ListReader): Trial {
  const entries = Object.entries(lists)
  const parts = Array.from({ length: random.integer(1, 2) }, () => {
    const [path, makes] = random.pick(entries)
    const kinds = Array.from({ length: random.integer(1, 3) }, () => random.integer(0, makes.length - 1))
    return { path, kinds, makes: kinds.map((kind) => makes[kind] as Make) }
  })
  const description = parts.map(({ path, kinds }) => `${path} of ${kinds}`).join(', ')
  return listTrial(`${name}: ${description}`, read, parts)
}

function listTrial(
  name: string,
  read: ListReader['read'],
  parts: ReadonlyArray<{ path: string; makes: readonly Make[] }>,
): Trial {
  return {
    name,
    reading(size) {
      const members: Record<string, unknown> = {}
      const count = Math.ceil(size / parts.length)
      for (const { path, makes } of parts) {
        place(
          members,
          path.split('.'),
          Array.from({ length: count }, (_, index) => makes[index % makes.length]?.(index)),
        )
      }
      return () => read(members)
    },
  }
}

/** Puts a list at its path, as an object where the path ends with braces. */
function place(members: Record<string, unknown>, [name = '', ...rest]: string[], list: unknown[]): void {
  if (rest.length > 0) {
    members[name] ??= {}
    place(members[name] as Record<string, unknown>, rest, list)
  } else if (name.endsWith('{}')) {
    members[name.slice(0, -2)] = Object.fromEntries(list.map((element, index) => [`m${index}`, element]))
  } else members[name] = list
}

/**
 * The steps of the trials of a reader, over those of its smallest input, for an input and its fourfold.
 * @returns a description of each that grows too fast or has too many, and of each pattern that takes more than linear work.
 */
export async function excessesOf(
  counter: StepCounter,
  reader: TextReader | ListReader,
  trials: readonly Trial[],
  { textSizes, listSizes, everySize }: Search,
): Promise<string[]> {
  const ofTexts = 'fragments' in reader
  const most = reader.most ?? (ofTexts ? MOST_FOR_CHARACTER : MOST_FOR_ELEMENT)
  const budget = ofTexts ? undefined : reader.budget
  const sizes = ofTexts ? textSizes : listSizes
  const found: string[] = []
  // A first run does one-off work, such as compiling a schema, which does not count. Its length is not a measured one,
  // because some readers cache their results.
  await counter.stepsOfAsync(trials[0]?.reading((sizes[0] ?? 1) + 1) ?? (() => {}))
  for (const { name, reading } of trials) {
    const least = await counter.stepsOfAsync(reading(1))
    const stepsAt = async (size: number) => (await counter.stepsOfAsync(reading(size))) - least
    let excess: string[] = []
    for (const size of sizes) {
      const large = await stepsAt(4 * size)
      const fault =
        budget === undefined
          ? await growthFault(stepsAt, size, size === sizes[0] ? UNEXPLAINED * size : size, large, most)
          : overBudget(large, 4 * size, budget)
      excess = fault === null ? [] : [`${name}: ${fault}`]
      if (everySize ? fault !== null : fault === null) break
    }
    found.push(...excess)
  }
  return [
    ...found,
    ...counter.takePatterns().flatMap((pattern) => describeBacktracking(pattern, reader.name)),
  ]
}

/**
 * What is wrong with the steps of a size and its fourfold; null when nothing is.
 * @param floor steps of the size that need no explanation. @param most for each character or element.
 */
async function growthFault(
  stepsAt: (size: number) => Promise<number>,
  size: number,
  floor: number,
  large: number,
  most: number,
): Promise<string | null> {
  const small = Math.max(floor, await stepsAt(size))
  const each = large / (4 * size)
  // Steps that begin at a length, as of the parts of a long text, or of a text that is not refused, grow only there.
  const growsOn = large / small > MOST_GROWTH && (await stepsAt(16 * size)) / large > MOST_GROWTH
  if (!growsOn && each <= most) return null
  return `${(large / small).toFixed(1)} times, ${each.toFixed(0)} for each of ${4 * size}`
}

const overBudget = (steps: number, size: number, budget: number): string | null =>
  steps <= budget ? null : `${steps} steps for ${size}, of ${budget}`

/** Characters and elements of which the processor time is measured. */
const TIMED_LENGTH = 64_000
const TIMED_COUNT = 8_000
/** Milliseconds that need no explanation. */
const SHORT_TIME = 60
/** Squared work takes 16 times as long for the fourfold. */
const MOST_TIMES = 9

/**
 * The trials whose processor time grows faster than their input: what counted steps do not see, inside of the runtime.
 * Trials that wait are left out.
 */
export function slowOnes(reader: TextReader | ListReader, trials: readonly Trial[]): string[] {
  const size = 'fragments' in reader ? TIMED_LENGTH : TIMED_COUNT
  return trials.flatMap(({ name, reading }) => {
    const [small, large] = [reading(size / 4), reading(size)]
    const start = process.threadCpuUsage()
    if (large() instanceof Promise) return []
    const { user, system } = process.threadCpuUsage(start)
    if (user + system < SHORT_TIME * 1_000) return []
    const growth = growthOf((factor) => void (factor === 1 ? small : large)())
    return growth < MOST_TIMES ? [] : [`${name}: ${growth.toFixed(1)} times as long`]
  })
}
