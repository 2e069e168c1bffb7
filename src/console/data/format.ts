/** Times are shown in UTC until the person chooses those of this computer. */
export type Zone = 'utc' | 'local'

const NUMBER = new Intl.NumberFormat('en')
const PERCENT = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 2 })

const ofZone = (zone: Zone) => (zone === 'utc' ? { timeZone: 'UTC' } : {})

/** A time to the minute, without its zone, which the header of the column names. */
export const timeText = (time: string, zone: Zone): string =>
  new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'short', ...ofZone(zone) }).format(
    new Date(time),
  )

/** A day, such as `Mon 23 Nov 2026`. */
export const dayText = (time: string, zone: Zone): string =>
  new Intl.DateTimeFormat('en-GB', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    ...ofZone(zone),
  })
    .format(new Date(time))
    .replace(',', '')

/** The name of the zone, as headers of columns show it. */
export const zoneName = (zone: Zone): string =>
  zone === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone

export const numberText = (value: number): string => NUMBER.format(value)

/** A part of a whole, such as `1.25 %`; nothing where there is no whole. */
export const percentText = (part: number, whole: number): string =>
  whole === 0 ? '' : PERCENT.format(part / whole).replace('%', ' %')

/** A time to the second, without its day. */
export const clockText = (time: string | Date, zone: Zone): string =>
  new Intl.DateTimeFormat('sv', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    ...ofZone(zone),
  }).format(new Date(time))

/** The milliseconds of a time, such as `.902`. */
export const millisecondText = (time: string): string =>
  `.${String(new Date(time).getUTCMilliseconds()).padStart(3, '0')}`

/** A duration and its unit, as `840 ms` or `1.24 s`. */
export function durationParts(milliseconds: number): [figure: string, unit: string] {
  return milliseconds < 1_000 ? [String(milliseconds), 'ms'] : [(milliseconds / 1_000).toFixed(2), 's']
}

export const durationText = (milliseconds: number): string => durationParts(milliseconds).join(' ')

/** A count of tokens, as `912` or `8.1k`. */
export const tokenText = (tokens: number): string =>
  tokens < 1_000 ? String(tokens) : `${(tokens / 1_000).toFixed(1)}k`

/** Credits with six decimals. @param micro micro-credits. */
export const creditText = (micro: number): string => (micro / 1_000_000).toFixed(6)

/** Credits with two decimals, where the exact amount is beside them. @param micro micro-credits. */
export const roundCreditText = (micro: number): string =>
  (micro / 1_000_000).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })

/** An id cut in the middle: one click copies all of it. */
export const idText = (id: string): string => (id.length > 20 ? `${id.slice(0, 13)}…${id.slice(-4)}` : id)

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long ago a time is, or how soon, as `4 minutes`, `2 h 52 m` or `in 2 days`. */
export function ageText(time: string, now: number): string {
  const age = now - Date.parse(time)
  const length = Math.abs(age)
  const text =
    length < HOUR
      ? plural(Math.max(1, Math.floor(length / MINUTE)), 'minute')
      : length < DAY
        ? `${Math.floor(length / HOUR)} h ${Math.floor((length % HOUR) / MINUTE)} m`
        : plural(Math.floor(length / DAY), 'day')
  return age < 0 ? `in ${text}` : text
}

/** A count with its noun, such as `1 minute` or `3 minutes`. */
export const plural = (count: number, noun: string): string =>
  `${numberText(count)} ${noun}${count === 1 ? '' : 's'}`

/** Credits for a million tokens, with what two decimals would lose. @param micro micro-credits. */
export const priceText = (micro: number): string =>
  (micro / 1_000_000).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 })
