/** A part of the report under its own heading. */
export const section = (title: string, ...parts: string[]): string => [`## ${title}`, ...parts].join('\n\n')

/** A table as Markdown, its columns aligned. */
export function table(head: string[], rows: string[][]): string {
  const widths = head.map((name, column) =>
    Math.max(3, name.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (cells: string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

export const times = (ratio: number): string => `${ratio.toFixed(1)}x`
/** Milliseconds; nothing where there is no figure. */
export const ms = (value: number | null): string => (value === null ? '' : `${value.toFixed(2)} ms`)
export const us = (value: number): string => `${value.toFixed(value < 100 ? 1 : 0)} µs`
/** Whether an aim is met, in words. */
export const verdict = (met: boolean): string => (met ? 'met' : 'not met')
