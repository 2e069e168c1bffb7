/** Times are shown in UTC until the person chooses those of this computer. */
export type Zone = 'utc' | 'local'

const NUMBER = new Intl.NumberFormat('en')

/** A time to the minute, without its zone, which the header of the column names. */
export function timeText(time: string, zone: Zone): string {
  const date = new Date(time)
  const parts = new Intl.DateTimeFormat('sv', {
    dateStyle: 'short',
    timeStyle: 'short',
    ...(zone === 'utc' && { timeZone: 'UTC' }),
  })
  return parts.format(date)
}

/** The name of the zone, as headers of columns show it. */
export const zoneName = (zone: Zone): string =>
  zone === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone

export const numberText = (value: number): string => NUMBER.format(value)

/** A time to the millisecond, without its day. */
export function clockText(time: string, zone: Zone): string {
  const parts = new Intl.DateTimeFormat('sv', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    ...(zone === 'utc' && { timeZone: 'UTC' }),
  })
  return parts.format(new Date(time)).replace(',', '.')
}

/** A duration, as `840 ms` or `1.24 s`. */
export const durationText = (milliseconds: number): string =>
  milliseconds < 1_000 ? `${milliseconds} ms` : `${(milliseconds / 1_000).toFixed(2)} s`

/** A count of tokens, as `912` or `8.1k`. */
export const tokenText = (tokens: number): string =>
  tokens < 1_000 ? String(tokens) : `${(tokens / 1_000).toFixed(1)}k`

/** Credits with six decimals. @param micro micro-credits. */
export const creditText = (micro: number): string => (micro / 1_000_000).toFixed(6)
