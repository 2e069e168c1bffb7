/** Numbers of tests. */
export interface Totals {
  passed: number
  failed: number
  skipped: number
}

export function addTotals(left: Totals, right: Totals): Totals {
  return {
    passed: left.passed + right.passed,
    failed: left.failed + right.failed,
    skipped: left.skipped + right.skipped,
  }
}

interface Report {
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  numTodoTests: number
  testResults: Array<{ status: string; assertionResults: unknown[] }>
}

/**
 * The totals of one vitest run. What fails outside of any test counts as a failed one, so that a run that is not
 * all right never reads as if it were: a file that cannot be loaded, a set-up that fails, an error after the tests.
 *
 * @param report what the JSON reporter wrote, or null if it wrote nothing
 * @param exitCode vitest's exit code; null if it was killed
 */
export function totalsOf(report: unknown, exitCode: number | null): Totals {
  const read = report as Report | null
  const broken = read?.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  )
  const failed = (read?.numFailedTests ?? 0) + (broken?.length ?? 0)
  return {
    passed: read?.numPassedTests ?? 0,
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: (read?.numPendingTests ?? 0) + (read?.numTodoTests ?? 0),
  }
}
