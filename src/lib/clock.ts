/** Milliseconds since the Unix epoch. A parameter everywhere, so that tests move time and never sleep. */
export type Clock = () => number

export const systemClock: Clock = () => Date.now()
