const HOUR = 60 * 60_000
const DAY = 24 * HOUR

/** Periods that end now, by their names in the address. */
export const PERIODS = { '1h': HOUR, '24h': DAY, '7d': 7 * DAY, '30d': 30 * DAY } as const
type PeriodName = keyof typeof PERIODS

const DEFAULT: PeriodName = '24h'

/** What the address says of the list: words of the filter, and a period with or without an end. */
export interface CallSearch {
  q?: string
  period?: PeriodName
  /** ISO times, in place of a period that ends now. */
  from?: string
  to?: string
}

const isTime = (value: unknown): value is string =>
  typeof value === 'string' && !Number.isNaN(Date.parse(value))

/** What an address says that the page understands. */
export function readSearch(search: Record<string, unknown>): CallSearch {
  const { q, period, from, to } = search
  return {
    ...(typeof q === 'string' && { q }),
    ...(typeof period === 'string' && period in PERIODS && { period: period as PeriodName }),
    ...(isTime(from) && { from }),
    ...(isTime(to) && { to }),
  }
}

/** A period in milliseconds since the epoch; `to` is null for one that ends now. */
interface Period {
  from: number
  to: number | null
}

/** The period of an address. */
export function periodOf({ period = DEFAULT, from, to }: CallSearch, now: number): Period {
  if (from === undefined) return { from: now - PERIODS[period], to: null }
  return { from: Date.parse(from), to: to === undefined ? null : Date.parse(to) }
}

/** The name of the period of an address; null for one of its own. */
export const periodName = ({ period = DEFAULT, from }: CallSearch): PeriodName | null =>
  from === undefined ? period : null

/** The period's parameters of the API. */
export const periodQuery = ({ from, to }: Period) => ({
  from: new Date(from).toISOString(),
  ...(to !== null && { to: new Date(to).toISOString() }),
})

/** The earlier or the later half of a period, as an address has it. */
export function halfOf(
  { from, to }: Period,
  half: 'earlier' | 'later',
  now: number,
): { from: string; to: string } {
  const end = to ?? now
  const middle = from + (end - from) / 2
  const [begin, last] = half === 'earlier' ? [from, middle] : [middle, end]
  return { from: new Date(begin).toISOString(), to: new Date(last).toISOString() }
}
