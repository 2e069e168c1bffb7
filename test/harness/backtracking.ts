import scslre from 'scslre'

export interface Pattern {
  source: string
  flags: string
}

/**
 * Whether a pattern can take work that grows faster than its text: adjacent runs that may share characters (`\s*\s*`), a
 * repeated choice that is ambiguous, and a search that begins a run anew at each of its characters (`/+$`). Counted steps do
 * not see what a pattern does inside.
 * @returns one description, or none.
 */
export function describeBacktracking(pattern: Pattern, place: string): string[] {
  const { reports } = scslre.analyse(pattern)
  if (reports.length === 0) return []
  const kinds = [
    ...new Set(reports.map(({ type, exponential }) => (exponential ? `${type}, exponential` : type))),
  ]
  return [`${place}: /${pattern.source}/${pattern.flags} (${kinds.join('; ')})`]
}
