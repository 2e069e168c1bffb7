import { systemClock } from './clock.ts'

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

/** Slices that are done in one turn of the event loop, by all works of the isolate together: some milliseconds. */
const SLICES_PER_TURN = 4
/** A work that has had no turn for so long has ended with its request. */
const LEFT_AFTER_MS = 1000

/** The works of this isolate, with the time of their last turn, the longest ago first. */
const working = new Map<object, number>()

/**
 * Does the slices one by one; other requests have their turn between them. Works of several requests share a turn, so that
 * a call waits for about as long whether one large prompt is inspected or many.
 */
export async function runSlices<Result>(slices: Slices<Result>): Promise<Result> {
  const work = {}
  try {
    for (;;) {
      const share = SLICES_PER_TURN / (working.size + Number(!working.has(work)))
      for (let slice = 0; slice < Math.max(1, Math.floor(share)); slice++) {
        const { done, value } = slices.next()
        if (done) return value
      }
      noteTurn(work)
      // When more slice generators run than may share the time, each waits for the others. A promise alone would continue before
      // any event.
      await new Promise((resolve) => setTimeout(resolve, Math.floor(1 / share)))
    }
  } finally {
    working.delete(work)
  }
}

/** The runtime does not resume a request that was cancelled, so its work is removed by the others. */
function noteTurn(work: object): void {
  const now = systemClock()
  working.delete(work)
  working.set(work, now)
  for (const [other, at] of working) {
    if (now - at < LEFT_AFTER_MS) return
    working.delete(other)
  }
}

const SORTED_AT_ONCE = 4096

/**
 * Sorts in slices; equal values keep their order.
 * @returns a new array.
 */
export function* sortedInSlices<Value>(
  values: readonly Value[],
  compare: (left: Value, right: Value) => number,
): Slices<Value[]> {
  if (values.length <= SORTED_AT_ONCE) return values.toSorted(compare)
  let sorted: Value[] = []
  for (let at = 0; at < values.length; at += SORTED_AT_ONCE) {
    for (const value of values.slice(at, at + SORTED_AT_ONCE).sort(compare)) sorted.push(value)
    yield
  }
  for (let width = SORTED_AT_ONCE; width < sorted.length; width *= 2) {
    const merged: Value[] = []
    for (let at = 0; at < sorted.length; at += 2 * width) {
      yield* mergeInto(merged, sorted, at, Math.min(sorted.length, at + width), at + 2 * width, compare)
    }
    sorted = merged
  }
  return sorted
}

/** Appends two adjoining sorted ranges, in order. */
function* mergeInto<Value>(
  merged: Value[],
  values: readonly Value[],
  start: number,
  middle: number,
  end: number,
  compare: (left: Value, right: Value) => number,
): Slices<void> {
  const stop = Math.min(values.length, end)
  let left = start
  let right = middle
  while (left < middle || right < stop) {
    const takesLeft =
      right >= stop || (left < middle && compare(values[left] as Value, values[right] as Value) <= 0)
    merged.push(values[takesLeft ? left++ : right++] as Value)
    if (merged.length % SORTED_AT_ONCE === 0) yield
  }
}
