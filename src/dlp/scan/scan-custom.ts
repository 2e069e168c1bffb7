import type { Slices } from '../../lib/slices.ts'
import { findMatches } from '../detectors/custom/patterns.ts'
import type { Plan } from './plan.ts'
import type { Report } from './scan.ts'
import { MOST_FINDINGS, type ScanBudget } from './scan-budget.ts'

/** Reports the matches of custom patterns and terms that start at `from` or later. */
export function* scanCustom(
  text: string,
  plan: Plan,
  from: number,
  report: Report,
  budget: ScanBudget,
): Slices<void> {
  for (const custom of plan.custom) {
    budget.spend(text.length)
    if (budget.endsSlice()) yield
    // The search stops at one match above the limit.
    const most = MOST_FINDINGS + 1
    const found =
      custom.kind === 'pattern'
        ? yield* findMatches(custom.pattern, text, from, most)
        : yield* custom.dictionary.find(text, most)
    // Here, because some of them may not be reported: matches after the last of so many were not looked for.
    budget.checkFindings(found.length)
    for (const { start, end } of found) if (start >= from) report(custom.id, start, end, custom.score)
  }
}
