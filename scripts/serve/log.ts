import { redact } from '../../src/lib/log.ts'

export type LogLevel = 'info' | 'warn' | 'error'
export type LogFields = Record<string, string | number | boolean | null | readonly string[]>
/** Writes one line about what the node does. */
export type Log = (level: LogLevel, event: string, fields?: LogFields) => void

const LONGEST_TEXT = 4_000

/** Writes one JSON line on stdout, without anything in the shape of a credential. */
export const log: Log = (level, event, fields = {}) => {
  const line = { at: new Date().toISOString(), level, event, ...fields }
  process.stdout.write(
    `${JSON.stringify(line, (_, value) => (typeof value === 'string' ? redact(value) : value))}\n`,
  )
}

/** Passes on the output of a process: its JSON lines as they are, with their source; other text, such as a crash, as a member. */
export function logOutput(source: string, line: string): void {
  const record = recordOf(line)
  const { level, event, ...fields } = record ?? {}
  if (record !== null) log(level as LogLevel, String(event), { source, ...(fields as LogFields) })
  else if (line.trim() !== '') log('warn', 'output', { source, text: line.slice(0, LONGEST_TEXT) })
}

function recordOf(line: string): Record<string, unknown> | null {
  if (!line.startsWith('{')) return null
  try {
    const record = JSON.parse(line) as Record<string, unknown>
    return typeof record.level === 'string' && typeof record.event === 'string' ? record : null
  } catch {
    return null
  }
}
