const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

interface Field {
  name: string
  least: number
  most: number
  /** Names of the values from `least` on. */
  names?: readonly string[]
}

const FIELDS: readonly Field[] = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of the month', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12, names: MONTHS },
  { name: 'day of the week', least: 0, most: 7, names: WEEKDAYS },
]

/**
 * Why a cron expression is not valid; null if it is. Five fields, in UTC or with `CRON_TZ=<zone> ` in front
 * (https://upstash.com/docs/qstash/features/schedules).
 */
export function cronFault(expression: string): string | null {
  const [, zone, cron = ''] = /^(?:CRON_TZ=(\S+) )?(.*)$/s.exec(expression) ?? []
  if (zone !== undefined && !isTimeZone(zone)) return `there is no time zone ${zone}`
  const parts = cron.split(' ')
  if (parts.length !== FIELDS.length) return 'must have five fields'
  const wrong = FIELDS.find(
    (field, index) => !(parts[index] ?? '').split(',').every((part) => fits(part, field)),
  )
  return wrong ? `the field of the ${wrong.name} is not valid` : null
}

/** A value, a range or `*`, each with an optional step. */
function fits(part: string, field: Field): boolean {
  const [range = '', step, ...rest] = part.split('/')
  if (rest.length > 0 || (step !== undefined && !/^[1-9]\d?$/.test(step))) return false
  if (range === '*') return true
  const [from, to = from, ...more] = range.split('-').map((text) => numberOf(text, field))
  return more.length === 0 && typeof from === 'number' && typeof to === 'number' && from <= to
}

function numberOf(text: string, { least, most, names = [] }: Field): number | null {
  const named = names.indexOf(text.toLowerCase())
  if (named >= 0) return least + named
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN
  return value >= least && value <= most ? value : null
}

function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}
