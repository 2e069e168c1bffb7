import { describe, expect, it } from 'vitest'
import { readCommand, runsOf } from '../../scripts/test.ts'
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

describe('the runs of vitest', () => {
  const runs = (...parameters: string[]) => runsOf(readCommand(parameters))
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

  it('are one for the projects of the root, and one in the Workers runtime', () => {
    expect(runs('ledger', '--ledger-seeds', '9', '-t', 'name')).toEqual([
      {
        parameters: ['--project', 'unit', '--project', 'local', '--project', 'http', 'ledger', '-t', 'name'],
        environment: { LEDGER_SEEDS: '9' },
      },
      { parameters: [...DURABLE, 'ledger', '-t', 'name'], environment: { LEDGER_SEEDS: '9' } },
    ])
    expect(runs('--project', 'unit')).toEqual([{ parameters: ['--project', 'unit'], environment: {} }])
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
