/** @returns milliseconds of the fastest of some runs: what the work takes when nothing else is in the way. */
export function fastestOf(runs: number, work: () => void): number {
  let fastest = Number.POSITIVE_INFINITY
  for (let run = 0; run < runs; run++) {
    const start = performance.now()
    work()
    fastest = Math.min(fastest, performance.now() - start)
  }
  return fastest
}
