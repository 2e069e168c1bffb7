import type { BashOptions } from 'just-bash/browser'

/**
 * Steps of all commands of a call together: a second or two. The limits of just-bash are for one loop or one query each, so that
 * nested loops take their product.
 */
const MOST_STEPS = 2_000_000

/** Steps of one event: a command of sed reads a line, a node of jq builds values, a function of awk reads its arguments. */
const COSTS: Readonly<Record<string, number>> = { awk: 1, sed: 10, jq: 10 }
const COST_OF_A_FUNCTION = 5
/** Each key of an array is a loop of its own. */
const COST_OF_KEYS = 20

/**
 * Counts the work of the interpreters of awk, sed and jq, which just-bash reports for each statement and expression. They compute
 * without a pause, so that they could not be stopped otherwise. The shell itself is bounded by its number of commands.
 */
export class InterpreterSteps implements NonNullable<BashOptions['coverage']> {
  #left = MOST_STEPS

  /** @param feature such as `awk:expr:call`. @throws Error when the steps are used up; the command fails with its message */
  hit(feature: string): void {
    const cost = costOf(feature)
    if (cost === 0) return
    this.#left -= cost
    if (this.#left < 0) throw new Error(`the commands of a call may take ${MOST_STEPS} steps together`)
  }
}

function costOf(feature: string): number {
  if (feature === 'awk:expr:call' || feature === 'awk:expr:regex') return COST_OF_A_FUNCTION
  if (feature === 'awk:stmt:for_in') return COST_OF_KEYS
  return COSTS[feature.slice(0, feature.indexOf(':'))] ?? 0
}
