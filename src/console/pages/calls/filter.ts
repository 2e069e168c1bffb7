/** Words of the filter, and the parameters of the API that they stand for. */
const WORDS: Readonly<Record<string, string>> = {
  request: 'request_id',
  response: 'response_id',
  run: 'run_id',
  user: 'user_id',
  key: 'key_id',
  group: 'group_id',
  model: 'model',
  provider: 'provider',
  surface: 'surface',
  tool: 'tool',
  connection: 'connection_id',
  outcome: 'outcome',
  status: 'status',
  error: 'error',
  found: 'found',
  flag: 'flag',
  cost_min: 'cost_min',
  cost_max: 'cost_max',
  duration_min: 'duration_min',
  duration_max: 'duration_max',
}

export const FILTER_WORDS = Object.keys(WORDS)

/** The parameters of the filters, such as `{ outcome: 'failed' }`. */
export type Filter = Readonly<Record<string, string>>

/** Reads words such as `outcome:failed model:gpt-5`. @returns also the first word that is no filter. */
export function parseFilter(text: string): { filter: Filter; unknown: string | null } {
  const filter: Record<string, string> = {}
  let unknown: string | null = null
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const [name = '', ...value] = word.split(':')
    const parameter = WORDS[name]
    if (parameter === undefined || value.join(':') === '') unknown ??= word
    else filter[parameter] = value.join(':')
  }
  return { filter, unknown }
}

/** The text of a filter with one word more, or without it where it has it. */
export function toggleWord(text: string, name: string, value: string): string {
  const words = text.split(/\s+/).filter(Boolean)
  const others = words.filter((word) => !word.startsWith(`${name}:`))
  return (words.includes(`${name}:${value}`) ? others : [...others, `${name}:${value}`]).join(' ')
}
