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
