import { describe, expect, it } from 'vitest'
import { readCommand } from '../../scripts/test.ts'
import { addTotals, totalsOf } from '../../scripts/test-totals.ts'

describe('the test command', () => {
  it('runs the usual projects unless told otherwise', () => {
    expect(readCommand([]).projects).toEqual(['unit', 'local', 'http', 'durable'])
    expect(readCommand(['--project', 'faults', '--project=unit']).projects).toEqual(['faults', 'unit'])
  })

  it('hands seeds and counts to the tests and the rest to vitest', () => {
    expect(
      readCommand([
        '--fuzz-seeds',
        '20',
        'ledger',
        '--ledger-seeds=1,2',
        '-t',
        'name',
        '--bail=1',
        '--retry',
        '2',
      ]),
    ).toEqual({
      projects: ['unit', 'local', 'http', 'durable'],
      environment: { FUZZ_SEEDS: '20', LEDGER_SEEDS: '1,2' },
      rest: ['ledger', '-t', 'name', '--bail=1', '--retry', '2'],
    })
  })

  it.each([
    [['--project', 'nothing'], /^--project takes one of unit, /],
    [['--project'], /^--project takes one of unit, /],
    [['--fuzz-seeds'], /^--fuzz-seeds needs a value$/],
    [['--fuzz-seeds='], /^--fuzz-seeds needs a value$/],
  ])('refuses %j', (parameters, message) => {
    expect(() => readCommand(parameters)).toThrow(message)
  })
})

describe('the totals', () => {
  const report = (passed: number, failed: number, more: Record<string, unknown> = {}) => ({
    numPassedTests: passed,
    numFailedTests: failed,
    numPendingTests: 2,
    numTodoTests: 1,
    testResults: [],
    ...more,
  })

  it('are those of the report', () => {
    expect(totalsOf(report(5, 0), 0)).toEqual({ passed: 5, failed: 0, skipped: 3 })
    expect(totalsOf(report(5, 2), 1)).toEqual({ passed: 5, failed: 2, skipped: 3 })
  })

  it('count a file that cannot be loaded', () => {
    const testResults = [
      { status: 'failed', assertionResults: [] },
      { status: 'failed', assertionResults: [{}] },
      { status: 'passed', assertionResults: [] },
    ]
    expect(totalsOf(report(5, 1, { testResults }), 1).failed).toBe(2)
  })

  it('never read as all right when the run was not', () => {
    expect(totalsOf(report(5, 0), 1).failed).toBe(1)
    expect(totalsOf(report(5, 0), null).failed).toBe(1)
    expect(totalsOf(null, 1)).toEqual({ passed: 0, failed: 1, skipped: 0 })
  })

  it('add up', () => {
    const one = { passed: 1, failed: 2, skipped: 3 }
    expect(addTotals(one, { passed: 10, failed: 20, skipped: 30 })).toEqual({
      passed: 11,
      failed: 22,
      skipped: 33,
    })
  })
})
