/** Milliseconds since the Unix epoch. A parameter everywhere, so that tests move time and never sleep. */
export type Clock = () => number

export const systemClock: Clock = () => Date.now()

/** The first of some times; null when there is none. */
export function earliest(times: ReadonlyArray<number | null | undefined>): number | null {
  const known = times.filter((time) => typeof time === 'number')
  return known.length === 0 ? null : Math.min(...known)
}
