import type { Slices } from '../../../lib/slices.ts'
import { findMatches } from '../detectors/custom/patterns.ts'
import type { Plan } from './plan.ts'
import type { Report } from './scan.ts'
import type { ScanBudget } from './scan-budget.ts'

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
    const found =
      custom.kind === 'pattern' ? findMatches(custom.pattern, text, from) : custom.dictionary.find(text)
    for (const { start, end } of found) if (start >= from) report(custom.id, start, end, custom.score)
  }
}
