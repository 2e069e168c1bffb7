import type { SeededRandom } from '../dlp/corpus/seeded-random.ts'

/** A search for texts on which a work takes more steps than their length explains. */

/** A text of a length in units. */
export type Growing = (units: number) => string

export interface Trial {
  name: string
  text: Growing
}

const fill = (unit: string, units: number) => unit.repeat(Math.ceil(units / unit.length)).slice(0, units)

/** `head`, then the parts in turn, each repeated so many times, over and over, and `tail`. */
export function grown(head: string, parts: ReadonlyArray<readonly [string, number]>, tail: string): Trial {
  const unit = parts.map(([fragment, times]) => fragment.repeat(times)).join('')
  const name = JSON.stringify([head, parts, tail])
  return { name, text: (units) => head + fill(unit, units) + tail }
}

/** A random combination of fragments. Some double a part with the length: long runs, each of which ends. */
export function randomText(random: SeededRandom, fragments: readonly string[]): Trial {
  const some = () => random.pick(fragments)
  const parts = Array.from({ length: random.integer(1, 3) }, () => [some(), random.integer(1, 5)] as const)
  const [head, tail] = [random.pick(['', some()]), random.pick(['', '!!!', some()])]
  if (random.integer(1, 3) > 1) return grown(head, parts, tail)
  const [run, rest] = [some(), parts.map(([fragment]) => fragment).join('')]
  return {
    name: JSON.stringify({ head, run, rest, tail }),
    text: (units) => `${head}${fill(run, units / 2)}${fill(rest, units / 2)}${tail}`,
  }
}

/** Fourfold texts may take this many times as many steps: linear work takes 4, squared work 16. */
const MOST_GROWTH = 5.2
/**
 * Units of the smaller text. It is above limits such as the length of a key, because cost grows faster below a limit.
 */
const SIZES = [1_000, 4_000, 16_000]

/**
 * The steps of a trial, at the first size at which they do not grow too fast, or at the last.
 * @param stepsAt runs the trial with so many units.
 * @returns a description if they grow too fast or are too many for a unit.
 */
export function describeGrowth(
  name: string,
  mostStepsPerUnit: number,
  stepsAt: (units: number) => number,
): string[] {
  let growth = 0
  let stepsPerUnit = 0
  for (const size of SIZES) {
    const small = stepsAt(size)
    const large = stepsAt(4 * size)
    growth = large / small
    stepsPerUnit = large / (4 * size)
    if (growth <= MOST_GROWTH) break
  }
  const isTooMuch = growth > MOST_GROWTH || stepsPerUnit > mostStepsPerUnit
  return isTooMuch ? [`${name}: ${growth.toFixed(1)} times, ${stepsPerUnit.toFixed(0)} a unit`] : []
}
