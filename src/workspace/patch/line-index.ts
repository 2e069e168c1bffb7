import type { StepBudget } from '../step-budget.ts'

/** Reduces a line to the part that has to be equal. */
export type LineForm = (line: string) => string

/**
 * The places of a patch's lines in a file, so that a search for consecutive lines reads only the places of the rarest one. A line
 * of the file that the patch does not have takes only the memory of a number.
 */
export class LineIndex {
  readonly #form: LineForm
  /** Equal lines of the patch have one number. */
  readonly #numbers = new Map<string, number>()
  /** The number of each line of the file; -1 if the patch does not have it. */
  readonly #lines: Int32Array
  /** Places in the file, ascending, by number: those of a number are between its start and the next one's. */
  readonly #places: Int32Array
  readonly #starts: Int32Array

  /** @param wanted all lines that will be searched. */
  constructor(lines: readonly string[], wanted: Iterable<string>, form: LineForm) {
    this.#form = form
    for (const line of wanted) {
      const formed = form(line)
      if (!this.#numbers.has(formed)) this.#numbers.set(formed, this.#numbers.size)
    }
    this.#lines = Int32Array.from(lines, (line) => this.#numberOf(line))
    this.#starts = new Int32Array(this.#numbers.size + 2)
    for (const number of this.#lines) if (number >= 0) this.#add(number + 2, 1)
    for (let number = 2; number < this.#starts.length; number++) this.#add(number, this.#startOf(number - 1))
    this.#places = new Int32Array(this.#starts.at(-1) ?? 0)
    // While places are filled in, the start of the next number is the position for the next place of a number.
    for (const [place, number] of this.#lines.entries()) {
      if (number < 0) continue
      this.#places[this.#startOf(number + 1)] = place
      this.#add(number + 1, 1)
    }
  }

  /** The first place of a line from a place on; null without one. */
  next(line: string, from: number): number | null {
    const number = this.#numberOf(line)
    const index = this.#firstFrom(number, from)
    return index < this.#endOf(number) ? (this.#places[index] as number) : null
  }

  /**
   * Finds consecutive lines, from a place on; null if they do not occur.
   * @param wanted at least one. @throws WorkspaceError invalid when the steps of comparisons are used up
   */
  find(wanted: readonly string[], from: number, steps: StepBudget): number | null {
    const numbers = wanted.map((line) => this.#numberOf(line))
    let rarest = 0
    for (const [index, number] of numbers.entries()) {
      if (this.#countOf(number) < this.#countOf(numbers[rarest] ?? -1)) rarest = index
    }
    const number = numbers[rarest] ?? -1
    for (let index = this.#firstFrom(number, from + rarest); index < this.#endOf(number); index++) {
      const start = (this.#places[index] as number) - rarest
      const equal = this.#equalAt(start, numbers)
      steps.spend(equal + 1)
      if (equal === numbers.length) return start
    }
    return null
  }

  #numberOf(line: string): number {
    return this.#numbers.get(this.#form(line)) ?? -1
  }

  #startOf(number: number): number {
    return this.#starts[number] ?? 0
  }

  /** The number -1 has no places. */
  #endOf(number: number): number {
    return number < 0 ? 0 : this.#startOf(number + 1)
  }

  #countOf(number: number): number {
    return this.#endOf(number) - this.#startOf(number)
  }

  #add(number: number, count: number): void {
    this.#starts[number] = this.#startOf(number) + count
  }

  /** Length of the common beginning of the numbers and the lines at a place. */
  #equalAt(start: number, numbers: readonly number[]): number {
    let equal = 0
    while (equal < numbers.length && this.#lines[start + equal] === numbers[equal]) equal++
    return equal
  }

  /** The index of the first place of a number that is not before `from`. */
  #firstFrom(number: number, from: number): number {
    let [low, high] = [this.#startOf(number), this.#endOf(number)]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#places[middle] as number) < from) low = middle + 1
      else high = middle
    }
    return low
  }
}
