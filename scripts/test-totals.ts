import { basename } from 'node:path'

/** Numbers of tests, and what failed by file and name. */
export interface Totals {
  passed: number
  failed: number
  skipped: number
  failures: string[]
}

export const NO_TESTS: Totals = { passed: 0, failed: 0, skipped: 0, failures: [] }

export function addTotals(left: Totals, right: Totals): Totals {
  return {
    passed: left.passed + right.passed,
    failed: left.failed + right.failed,
    skipped: left.skipped + right.skipped,
    failures: [...left.failures, ...right.failures],
  }
}

interface Report {
  numPassedTests: number
  numPendingTests: number
  numTodoTests: number
  testResults: ReportedFile[]
}

interface ReportedFile {
  /** The path. */
  name: string
  status: string
  assertionResults: Array<{ status: string; fullName: string }>
}

/**
 * The totals of one vitest run. A failure outside of any test counts as a failed test: a file that cannot be loaded, a
 * set-up that fails, an error after the tests. So a run with such a failure never reports success.
 *
 * @param report output of the JSON reporter, or null if there is none
 * @param exitCode vitest's exit code; null if it was killed
 */
export function totalsOf(report: unknown, exitCode: number | null): Totals {
  const read = report as Report | null
  const failures = (read?.testResults ?? []).flatMap(failuresOf)
  if (failures.length === 0 && exitCode !== 0) failures.push('the test runner itself')
  return {
    passed: read?.numPassedTests ?? 0,
    failed: failures.length,
    skipped: (read?.numPendingTests ?? 0) + (read?.numTodoTests ?? 0),
    failures,
  }
}

function failuresOf({ name, status, assertionResults }: ReportedFile): string[] {
  const file = basename(name)
  if (status === 'failed' && assertionResults.length === 0) return [file]
  return assertionResults
    .filter((test) => test.status === 'failed')
    .map(({ fullName }) => `${file} > ${fullName}`)
}
