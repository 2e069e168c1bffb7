/**
 * Work that is done in slices: it yields where other requests may have their turn. Slices are cut by counted steps,
 * because the clock of Workers stands still while code runs.
 */
export type Slices<Result> = Generator<void, Result, void>

/** Does all slices at once. */
export function drained<Result>(slices: Slices<Result>): Result {
  for (;;) {
    const { done, value } = slices.next()
    if (done) return value
  }
}

/** Does the slices one by one; other requests have their turn between them. */
export async function inTurns<Result>(slices: Slices<Result>): Promise<Result> {
  for (;;) {
    const { done, value } = slices.next()
    if (done) return value
    // A promise alone would continue before any other event.
    await new Promise((resolve) => setTimeout(resolve, 0))
  }
}
