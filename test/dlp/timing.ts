/** Milliseconds of processor time below which a measurement is not exact: systems count it in steps of some. */
const EXACT = 40

/** @returns milliseconds of this thread's processor time for one run, over as many runs as the clock can measure */
function processorTime(work: () => void): number {
  for (let runs = 1; ; runs *= 2) {
    const start = process.threadCpuUsage()
    for (let run = 0; run < runs; run++) work()
    const { user, system } = process.threadCpuUsage(start)
    const spent = (user + system) / 1_000
    if (spent >= EXACT) return spent / runs
  }
}

/**
 * Waiting for a busy machine does not count; what else it costs (caches, clock rates) makes times longer, never shorter.
 * @returns milliseconds of processor time that some work takes: the least of some measurements
 */
export function leastTime(measurements: number, work: () => void): number {
  return Math.min(...Array.from({ length: measurements }, () => processorTime(work)))
}

/** Milliseconds that even the larger work has to take, so that the growth is that of the work and not of its start. */
const TELLING = 12
const MOST_TRIES = 5
/** Linear work is done with a smaller growth; squared work never comes near it, so that no try is one too many. */
const PLAINLY_LINEAR = 7

/**
 * How many times as long work of fourfold size takes: linear work 4 times, squared work 16.
 * @param work of a size that is multiplied by its argument. @returns the least of some tries; 0 if the work is too short
 */
export function growthOf(work: (factor: 1 | 4) => void): number {
  const started = performance.now()
  work(4)
  const first = performance.now()
  work(4)
  if (Math.min(first - started, performance.now() - first) < TELLING) return 0
  let least = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < MOST_TRIES && least > PLAINLY_LINEAR; tries++) {
    const once = processorTime(() => work(1))
    least = Math.min(least, processorTime(() => work(4)) / once)
  }
  return least
}
