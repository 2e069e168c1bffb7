/** A table of text: the first column to the left, the others to the right. */
export function textTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [head, ...rows].map((row) => row.map(String))
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  const [titles = [], ...rest] = cells
  return [line(titles), widths.map((width) => '-'.repeat(width)).join('  '), ...rest.map(line)].join('\n')
}

export const share = (part: number): string => part.toFixed(3)
