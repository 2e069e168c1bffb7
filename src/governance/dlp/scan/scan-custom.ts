import { findMatches } from '../detectors/custom/patterns.ts'
import type { Plan } from './plan.ts'
import type { Report } from './scan.ts'

/** Reports the matches of custom patterns and terms that start at `from` or later. */
export function scanCustom(text: string, plan: Plan, from: number, report: Report): void {
  for (const custom of plan.custom) {
    const found =
      custom.kind === 'pattern' ? findMatches(custom.pattern, text, from) : custom.dictionary.find(text)
    for (const { start, end } of found) if (start >= from) report(custom.id, start, end, custom.score)
  }
}
