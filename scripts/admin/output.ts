import type { Command, Option, Outcome } from './command.ts'
import type { Item } from './gateway.ts'
import type { Program } from './program.ts'

/** What a command found, as lines for a person. */
export function formatOutcome(outcome: Exclude<Outcome, { kind: 'printed' }>): string[] {
  if (outcome.kind === 'report') return outcome.lines
  if (outcome.kind === 'item') return formatItem(outcome.item)
  return outcome.items.length === 0 ? ['(none)'] : formatTable(outcome.items, outcome.columns)
}

/** The same for programs: the API's own objects. */
export function outcomeJson(outcome: Exclude<Outcome, { kind: 'printed' }>): unknown {
  return outcome.kind === 'list' ? outcome.items : outcome.item
}

function formatTable(items: readonly Item[], columns: readonly string[]): string[] {
  const rows = [columns.map(heading), ...items.map((item) => columns.map((column) => cell(item[column])))]
  const widths = columns.map((_column, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((text, index) => text.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

function formatItem(item: Item): string[] {
  const width = Math.max(...Object.keys(item).map((name) => name.length))
  return Object.entries(item).map(([name, value]) => `${name.padEnd(width)}  ${cell(value)}`.trimEnd())
}

const heading = (column: string) => column.toUpperCase().replaceAll('_', ' ')

/** One value on one line. Control characters are shown, not sent to the terminal. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cell).join(', ')
  if (typeof value === 'object') return Object.entries(value).map(pair).join(' ')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return String(value).replace(/[\u0000-\u001f\u007f-\u009f]/g, '\u00b7')
}

const pair = ([name, value]: [string, unknown]) => `${name}=${cell(value)}`

/** Every command with one line. */
export function overallHelp(program: Program, commands: readonly Command[]): string {
  const rows = commands.map((command) => [usageOf(command), command.summary] as const)
  const width = Math.max(...rows.map(([usage]) => usage.length))
  return [
    `Usage: ${program.usage} <group> <verb> [arguments] [--options]`,
    '',
    ...rows.map(([usage, summary]) => `  ${usage.padEnd(width)}  ${summary}`),
    '',
    '  --json                          Print what the API answered, for programs',
    '  --organization <slug or id>     The organization (or HEADGATE_ORGANIZATION)',
    ...Object.entries(program.options).map(
      ([name, { value, describe }]) => `  ${`--${name} <${value}>`.padEnd(30)}  ${describe}`,
    ),
    '  <group> <verb> --help           Options of one command',
    '',
    program.where,
    'Exit codes: 0 done, 1 refused or failed, 2 wrong command line, 3 broken audit chain.',
  ].join('\n')
}

/** One command with its options. */
export function commandHelp(program: Program, command: Command): string {
  const options = Object.entries(optionsOf(program, command)).map(([name, option]) => {
    const left = option.value === undefined ? `--${name}` : `--${name} <${option.value}>`
    const notes = [option.required && 'required', option.multiple && 'may be repeated'].filter(Boolean)
    return [left, option.describe + (notes.length > 0 ? ` (${notes.join(', ')})` : '')] as const
  })
  const width = Math.max(...options.map(([left]) => left.length))
  return [
    `${command.summary}.`,
    '',
    `Usage: ${program.usage} ${usageOf(command)} [--options]`,
    '',
    ...options.map(([left, describe]) => `  ${left.padEnd(width)}  ${describe}`),
  ].join('\n')
}

const ORGANIZATION: Option = {
  value: 'slug or id',
  describe: 'the organization (or HEADGATE_ORGANIZATION)',
}

/** The options of a command with those of every command. */
export const optionsOf = (program: Program, command: Command): Record<string, Option> => ({
  ...command.options,
  ...(command.inOrganization && { organization: ORGANIZATION }),
  ...program.options,
  json: { describe: 'print what the API answered' },
})

const usageOf = ({ group, verb, positionals }: Command) =>
  [group, verb, ...positionals.map((name) => `<${name}>`)].filter(Boolean).join(' ')
