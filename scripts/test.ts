// npm test [-- options]: runs the tests and ends with one line of totals.
//
//   --project <name>     unit, steps, local, http, durable (the default five), dlp, faults, clients, browser; may be repeated.
//                        To faults belong those of the durable tests that are campaigns, with more trials.
//   --fuzz-seeds 20      every option that ends in -seeds, -operations, -runs, -rounds, -calls or -seconds reaches
//                        the tests as an environment variable (FUZZ_SEEDS=20)
//   --clock <instant>    sets the clock of all processes, such as 2026-11-30T23:59:50Z
//   anything else        goes to vitest, such as a part of a file name or -t <name>
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { movedClock } from '../test/harness/moved-clock/moved-clock.ts'
import { addTotals, NO_TESTS, type Totals, totalsOf } from './test-totals.ts'

const ROOT = join(import.meta.dirname, '..')
const DEFAULT_PROJECTS = ['unit', 'steps', 'local', 'http', 'durable']
const PROJECTS = [...DEFAULT_PROJECTS, 'dlp', 'faults', 'clients', 'browser']

/** The Durable Objects' tests run inside the runtime, with a configuration of their own. */
const DURABLE_CONFIG = 'test/durable/vitest.config.ts'

/** Files of the durable project that are campaigns: a part of `faults` too, with trials of their own. */
const DURABLE_CAMPAIGNS = [
  'test/durable/durable-response-random.test.ts',
  'test/durable/event-log-random.test.ts',
  'test/durable/ledger-interleaving.test.ts',
  'test/durable/ledger-shards.test.ts',
  'test/durable/response-restarts-random.test.ts',
]
const CAMPAIGN_ENVIRONMENT = { EVENT_LOG_SEEDS: '10', LEDGER_SEEDS: '10', RESPONSE_FAULT_RUNS: '200' }

const TEST_OPTION = /^--([a-z]+(?:-[a-z]+)*-(?:seeds|operations|runs|rounds|calls|seconds))(?:=(.*))?$/

export interface TestCommand {
  projects: string[]
  environment: Record<string, string>
  /** The instant at which the clock begins; null for the real one. */
  clock: string | null
  /** Arguments of vitest. */
  rest: string[]
}

/**
 * Reads the command line.
 *
 * @throws if a project is unknown or an option lacks its value
 */
export function readCommand(parameters: string[]): TestCommand {
  const command: TestCommand = { projects: [], environment: {}, clock: null, rest: [] }
  const queue = [...parameters]
  for (let parameter = queue.shift(); parameter !== undefined; parameter = queue.shift()) {
    const [, name, attached] = TEST_OPTION.exec(parameter) ?? []
    const project = /^--project(?:=(.*))?$/.exec(parameter)
    const clock = /^--clock(?:=(.*))?$/.exec(parameter)
    if (clock !== null) {
      command.clock = clock[1] ?? queue.shift() ?? ''
    } else if (project !== null) {
      const value = project[1] ?? queue.shift() ?? ''
      if (!PROJECTS.includes(value)) throw new Error(`--project takes one of ${PROJECTS.join(', ')}`)
      command.projects.push(value)
    } else if (name !== undefined) {
      const value = attached ?? queue.shift() ?? ''
      if (value === '') throw new Error(`--${name} needs a value`)
      command.environment[name.toUpperCase().replaceAll('-', '_')] = value
    } else {
      command.rest.push(parameter)
    }
  }
  if (command.projects.length === 0) command.projects = DEFAULT_PROJECTS
  return command
}

export interface VitestRun {
  parameters: string[]
  environment: Record<string, string>
}

/** Projects whose tests compute; those of the others wait for local systems about as long as they compute. */
const COMPUTING_PROJECTS = ['unit', 'steps', 'durable']

/**
 * The vitest runs that a command needs, in lanes that run side by side. The second lane computes in one worker, while the
 * tests of the first one wait; so each module of it is loaded once.
 */
export function lanesOf(command: TestCommand): VitestRun[][] {
  const computing = command.projects.filter((project) => COMPUTING_PROJECTS.includes(project))
  const waiting = command.projects.filter((project) => !COMPUTING_PROJECTS.includes(project))
  if (computing.length === 0 || waiting.length === 0) return [runsOf(command)]
  const isSet = command.rest.some((parameter) => parameter.startsWith('--maxWorkers'))
  const oneWorker = isSet ? command.rest : [...command.rest, '--maxWorkers=1']
  return [
    runsOf({ ...command, projects: waiting }),
    runsOf({ ...command, projects: computing, rest: oneWorker }),
  ]
}

/** The vitest runs of these projects, one after another. */
function runsOf({ projects, environment, rest }: TestCommand): VitestRun[] {
  const rooted = projects.filter((project) => project !== 'durable')
  const runs: VitestRun[] = []
  if (rooted.length > 0) {
    runs.push({ parameters: [...rooted.flatMap((project) => ['--project', project]), ...rest], environment })
  }
  const { filters, options } = splitRest(rest)
  const campaigns = DURABLE_CAMPAIGNS.filter(
    (file) => filters.length === 0 || filters.some((filter) => file.includes(filter)),
  )
  if (projects.includes('faults') && campaigns.length > 0) {
    runs.push({
      parameters: ['--config', DURABLE_CONFIG, ...options, ...campaigns],
      environment: { ...CAMPAIGN_ENVIRONMENT, ...environment },
    })
  }
  if (projects.includes('durable'))
    runs.push({ parameters: ['--config', DURABLE_CONFIG, ...rest], environment })
  return runs
}

/** Splits parts of file names from other arguments. A word after an option counts as its value. */
function splitRest(rest: string[]): { filters: string[]; options: string[] } {
  const isFilter = (parameter: string, index: number) =>
    !parameter.startsWith('-') && !/^-[^=]*$/.test(rest[index - 1] ?? '')
  return {
    filters: rest.filter(isFilter),
    options: rest.filter((parameter, index) => !isFilter(parameter, index)),
  }
}

/** Compiled code that the many processes of local systems share. */
const COMPILED_CODE = join(ROOT, 'node_modules/.cache/headgate/compiled')
const MEMORY_FOLDER = '/dev/shm'
/** The default projects write a few hundred megabytes. A container often has less memory there than that. */
const LEAST_MEMORY_BYTES = 4 * 1024 ** 3

/** Makes the folder of temporary files. In memory it saves work: each tenant and each response has a database file. */
function makeTemporaryFolder(projects: string[]): string {
  const mayUseMemory =
    process.env.TMPDIR === undefined && projects.every((name) => DEFAULT_PROJECTS.includes(name))
  const folder = mkdtempSync(join(mayUseMemory && hasRoom() ? MEMORY_FOLDER : tmpdir(), 'headgate-tests-'))
  // PostgreSQL refuses to run as root: its files in there belong to another user.
  chmodSync(folder, 0o711)
  return folder
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
    return bavail * bsize >= LEAST_MEMORY_BYTES
  } catch {
    return false
  }
}

/**
 * @param report where vitest's own report goes.
 * @param output descriptor of the file that gets what it prints; null for the terminal.
 */
async function runVitest(
  { parameters, environment }: VitestRun,
  report: string,
  output: number | null,
): Promise<Totals> {
  const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
  const child = spawn(
    process.execPath,
    [
      vitest,
      'run',
      '--passWithNoTests',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...parameters,
    ],
    {
      cwd: ROOT,
      stdio: ['inherit', output ?? 'inherit', output ?? 'inherit'],
      env: { ...process.env, ...environment },
    },
  )
  const pass = (signal: NodeJS.Signals) => child.kill(signal)
  process.on('SIGTERM', pass)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  process.off('SIGTERM', pass)
  return totalsOf(readReport(report), code)
}

function readReport(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}

/** Runs the vitest runs of one lane, one after another. @param output as that of `runVitest`. */
async function runLane(runs: VitestRun[], folder: string, output: number | null): Promise<Totals> {
  let totals: Totals = NO_TESTS
  for (const { parameters, environment } of runs) {
    const run = {
      parameters,
      environment: { TMPDIR: folder, NODE_COMPILE_CACHE: COMPILED_CODE, ...environment },
    }
    totals = addTotals(totals, await runVitest(run, join(folder, `report-${randomUUID()}.json`), output))
  }
  return totals
}

/** Runs lanes side by side. The output of the first lane is shown at once; that of the second, after the first. */
async function runLanes([first = [], second = []]: VitestRun[][], folder: string): Promise<Totals> {
  const printed = join(folder, 'second-lane.txt')
  const output = openSync(printed, 'w')
  const running = runLane(second, folder, output).finally(() => closeSync(output))
  const firstTotals = await runLane(first, folder, null)
  if (second.length > 0)
    console.log('\nThe tests of the other projects run beside these; their report follows.')
  const secondTotals = await running
  process.stdout.write(readFileSync(printed))
  return addTotals(firstTotals, secondTotals)
}

async function main(): Promise<void> {
  const command = readCommand(process.argv.slice(2))
  if (command.clock !== null) Object.assign(command.environment, movedClock(command.clock))
  const folder = makeTemporaryFolder(command.projects)
  // The runs get it too, and end.
  process.on('SIGINT', () => {})
  let totals: Totals
  try {
    totals = await runLanes(lanesOf(command), folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  if (totals.passed + totals.failed === 0) console.error('test: nothing ran')
  for (const failure of totals.failures) console.log(`failed: ${failure}`)
  console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`)
  process.exitCode = totals.failed > 0 || totals.passed === 0 ? 1 : 0
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    console.error(`test: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 2
  })
}
