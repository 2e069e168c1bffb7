import { describe, expect, it } from 'vitest'
import { lanesOf, readCommand } from '../../scripts/test.ts'
import { addTotals, totalsOf } from '../../scripts/test-totals.ts'

describe('the test command', () => {
  it('runs the usual projects unless told otherwise', () => {
    expect(readCommand([]).projects).toEqual(['unit', 'steps', 'local', 'http', 'durable'])
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
      projects: ['unit', 'steps', 'local', 'http', 'durable'],
      environment: { FUZZ_SEEDS: '20', LEDGER_SEEDS: '1,2' },
      clock: null,
      rest: ['ledger', '-t', 'name', '--bail=1', '--retry', '2'],
    })
  })

  it('takes the instant at which the clock begins', () => {
    const { clock, rest } = readCommand(['--clock', '2026-11-30T23:59:50Z', 'ledger'])
    expect({ clock, rest }).toEqual({ clock: '2026-11-30T23:59:50Z', rest: ['ledger'] })
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

describe('the runs of vitest', () => {
  const lanes = (...parameters: string[]) => lanesOf(readCommand(parameters))
  const runs = (...parameters: string[]) => {
    const [only = [], ...others] = lanes(...parameters)
    expect(others).toEqual([])
    return only
  }
  const DURABLE = ['--config', 'test/durable/vitest.config.ts']
  const CAMPAIGN = 'test/durable/durable-response-random.test.ts'
  const CAMPAIGNS = [
    CAMPAIGN,
    'test/durable/event-log-random.test.ts',
    'test/durable/ledger-interleaving.test.ts',
    'test/durable/ledger-shards.test.ts',
    'test/durable/response-restarts-random.test.ts',
  ]
  const TRIALS = { EVENT_LOG_SEEDS: '10', LEDGER_SEEDS: '10', RESPONSE_FAULT_RUNS: '200' }

  it('are in one lane for the projects that wait, and in another, in one worker, for those that compute', () => {
    const environment = { LEDGER_SEEDS: '9' }
    const given = ['ledger', '-t', 'name']
    expect(lanes('ledger', '--ledger-seeds', '9', '-t', 'name')).toEqual([
      [{ parameters: ['--project', 'local', '--project', 'http', ...given], environment }],
      [
        { parameters: ['--project', 'unit', '--project', 'steps', ...given, '--maxWorkers=1'], environment },
        { parameters: [...DURABLE, ...given, '--maxWorkers=1'], environment },
      ],
    ])
    const [, computing] = lanes('--maxWorkers', '2')
    expect(computing?.[0]?.parameters).toEqual([
      '--project',
      'unit',
      '--project',
      'steps',
      '--maxWorkers',
      '2',
    ])
  })

  it('are in one lane where all wait, or all compute', () => {
    expect(runs('--project', 'unit')).toEqual([{ parameters: ['--project', 'unit'], environment: {} }])
    expect(runs('--project', 'unit', '--project', 'durable')).toEqual([
      { parameters: ['--project', 'unit'], environment: {} },
      { parameters: DURABLE, environment: {} },
    ])
  })

  it('of faults take in the campaigns in that runtime, with more trials unless told otherwise', () => {
    expect(runs('--project', 'faults', '--bail=1')).toEqual([
      { parameters: ['--project', 'faults', '--bail=1'], environment: {} },
      { parameters: [...DURABLE, '--bail=1', ...CAMPAIGNS], environment: TRIALS },
    ])
    const [, campaign] = runs('--project', 'faults', '--response-fault-runs', '1000')
    expect(campaign?.environment).toEqual({ ...TRIALS, RESPONSE_FAULT_RUNS: '1000' })
  })

  it('of faults leave them out when other files are asked for', () => {
    expect(runs('--project', 'faults', 'responses-memory')).toHaveLength(1)
    expect(runs('--project', 'faults', 'responses-memory', 'durable-response')[1]?.parameters).toEqual([
      ...DURABLE,
      CAMPAIGN,
    ])
    expect(runs('--project', 'faults', '-t', 'a name')[1]?.parameters).toEqual([
      ...DURABLE,
      '-t',
      'a name',
      ...CAMPAIGNS,
    ])
  })
})

describe('the totals', () => {
  const test = (status: string, fullName = 'a test') => ({ status, fullName })
  const file = (status: string, ...assertionResults: object[]) => ({
    name: '/project/test/some.test.ts',
    status,
    assertionResults,
  })
  const report = (passed: number, ...testResults: object[]) => ({
    numPassedTests: passed,
    numPendingTests: 2,
    numTodoTests: 1,
    testResults,
  })

  it('are those of the report', () => {
    expect(totalsOf(report(1, file('passed', test('passed'))), 0)).toEqual({
      passed: 1,
      failed: 0,
      skipped: 3,
      failures: [],
    })
    const failed = file('failed', test('failed', 'one'), test('passed', 'two'), test('failed', 'three'))
    expect(totalsOf(report(1, failed), 1)).toEqual({
      passed: 1,
      failed: 2,
      skipped: 3,
      failures: ['some.test.ts > one', 'some.test.ts > three'],
    })
  })

  it('count a file that cannot be loaded', () => {
    const totals = totalsOf(report(5, file('failed'), file('failed', test('failed')), file('passed')), 1)
    expect(totals.failed).toBe(2)
    expect(totals.failures).toEqual(['some.test.ts', 'some.test.ts > a test'])
  })

  it('never read as all right when the run was not', () => {
    expect(totalsOf(report(5), 1).failed).toBe(1)
    expect(totalsOf(report(5), null).failed).toBe(1)
    expect(totalsOf(null, 1)).toEqual({
      passed: 0,
      failed: 1,
      skipped: 0,
      failures: ['the test runner itself'],
    })
  })

  it('add up', () => {
    const one = { passed: 1, failed: 2, skipped: 3, failures: ['a', 'b'] }
    expect(addTotals(one, { passed: 10, failed: 20, skipped: 30, failures: ['c'] })).toEqual({
      passed: 11,
      failed: 22,
      skipped: 33,
      failures: ['a', 'b', 'c'],
    })
  })
})
