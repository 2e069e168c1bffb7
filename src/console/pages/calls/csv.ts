import type { Call } from '../../data/outcomes.ts'

const COLUMNS = [
  'id',
  'at',
  'request_id',
  'user_id',
  'key_id',
  'surface',
  'action',
  'model',
  'tool',
  'connection_id',
  'provider',
  'response_id',
  'run_id',
  'status',
  'error',
  'outcome',
  'flags',
  'found',
  'duration_ms',
  'first_event_ms',
  'input_tokens',
  'output_tokens',
  'cost',
  'count',
] as const satisfies ReadonlyArray<keyof Call>

/** What a spreadsheet would take for a formula: a caller chooses names of models. */
const FORMULA = /^[=+\-@\t\r]/

function cell(value: Call[(typeof COLUMNS)[number]]): string {
  const text = Array.isArray(value) ? value.join(' ') : String(value ?? '')
  const safe = typeof value !== 'number' && FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Calls as CSV (RFC 4180), the names of the API as its first line. */
export const csvText = (calls: readonly Call[]): string =>
  [COLUMNS.join(','), ...calls.map((call) => COLUMNS.map((name) => cell(call[name])).join(','))].join('\r\n')
