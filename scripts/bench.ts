// npm run bench: what the gateway costs over a bare proxy in the same runtime. Loopback only; stops by itself.
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { AGENTS_SECTION, measureDispatch } from './bench/agents/dispatch.ts'
import { measureRecordCpu, RECORDS_SECTION } from './bench/costs/record-cpu.ts'
import { COSTS_SECTION, countCosts, PRICES_SECTION } from './bench/costs/section.ts'
import { checkLedger } from './bench/ledger-check.ts'
import { MCP_SECTION, measureMcp } from './bench/mcp/section.ts'
import { BenchFailure, type MeasurePlan, measure } from './bench/measure.ts'
import { findPortkey } from './bench/portkey.ts'
import { profileScenario } from './bench/profile-run.ts'
import { type BenchReport, renderReport } from './bench/report.ts'
import { AIMED_NAMES, SCENARIO_NAMES } from './bench/scenarios.ts'
import { measureStarts, STARTS_SECTION } from './bench/starts/cold-start.ts'
import { type BenchSystem, STORAGE, startSystem } from './bench/system.ts'
import { freePorts } from './node/ports.ts'
import { StartError } from './node/start-error.ts'

const ROOT = join(import.meta.dirname, '..')
/** Measurements besides the scenarios. */
const SECTIONS = [STARTS_SECTION, MCP_SECTION, AGENTS_SECTION, COSTS_SECTION, RECORDS_SECTION]
/** What `--only` knows besides, which the section before has a part of. */
const PARTS = [PRICES_SECTION]
/** Everything that is measured. */
const NAMES = [...SCENARIO_NAMES, ...SECTIONS]
/** For `--only`, the scenarios that have aims. */
const AIMED = 'aims'
const USAGE = `npm run bench -- [options]
  --seconds N       about how long to measure, default 600; each scenario takes 20 s at the least, 10 s with --rounds 1;
                    starts and mcp take about half a minute each, agents two minutes, costs four, records one
  --connections N   connections of the throughput rounds, default 16; streams have twice as many, large bodies at most 4
  --rounds N        rounds of each scenario, default 3
  --only NAMES      what to measure, separated by commas, ${AIMED} for all that has aims:${nameLines()}
  --portkey FOLDER  an installed @portkey-ai/gateway, or where it is installed; measured beside Headgate
  --prices          only what a call of each kind takes and costs, as --only ${PRICES_SECTION}: costs without the responses of
                    a minute
  --profile         record CPU profiles of the gateway instead, into .headgate/
  --help            print this`

/** The names, a few on each line. */
function nameLines(): string {
  const indent = `\n${' '.repeat(20)}`
  const rows = Array.from({ length: Math.ceil(NAMES.length / 3) }, (_, row) =>
    NAMES.slice(row * 3, row * 3 + 3).join(', '),
  )
  return indent + rows.join(`,${indent}`)
}

interface Options extends Omit<MeasurePlan, 'slot'> {
  seconds: number
  only: string[]
  /** Path of its server; null when it is not installed. */
  portkey: string | null
  profile: boolean
}

/** Time of a round without load, in which the ledger does its deferred work. */
const PAUSE_PER_ROUND_MS = 3_400
/** Loads of a round in lengths of a throughput round, what the first round has besides, and what Portkey takes. */
const SLOTS_PER_ROUND = 3.5
const SLOTS_OF_FIRST = 1
const SLOTS_OF_PORTKEY = 1.5
const WARM_UP_MS = 5_000

/** @returns null when only the usage is requested. @throws StartError for options that are not valid. */
function readOptions(): Options | null {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '600' },
      connections: { type: 'string', default: '16' },
      rounds: { type: 'string', default: '3' },
      only: { type: 'string', default: NAMES.join(',') },
      portkey: { type: 'string' },
      prices: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const names = values.prices ? PRICES_SECTION : values.only
  const requested = names.split(',').map((name) => name.trim())
  const only = requested.flatMap((name) => (name === AIMED ? AIMED_NAMES : name))
  const unknown = only.find((name) => ![...NAMES, ...PARTS].includes(name))
  if (unknown !== undefined) throw new StartError(`there is nothing called ${unknown}\n${USAGE}`)
  return {
    seconds: wholeNumber('seconds', values.seconds, 3_600),
    connections: wholeNumber('connections', values.connections, 1_000),
    rounds: wholeNumber('rounds', values.rounds, 100),
    only,
    portkey: values.profile ? null : findPortkey(values.portkey, ROOT),
    profile: values.profile,
  }
}

function wholeNumber(name: string, text: string, most: number): number {
  const number = Number(text)
  if (Number.isInteger(number) && number >= 1 && number <= most) return number
  throw new StartError(`--${name} takes a whole number from 1 to ${most}`)
}

/** The milliseconds of a scenario: an equal share of the requested time. */
const shareOf = ({ seconds, only }: Options): number => (seconds * 1_000) / only.length

/** How long each target has in each round. */
function slotOf(options: Options): number {
  const { rounds, portkey } = options
  const slots = SLOTS_PER_ROUND + (portkey === null ? 0 : SLOTS_OF_PORTKEY)
  const load = shareOf(options) - WARM_UP_MS - rounds * PAUSE_PER_ROUND_MS
  return Math.max(500, load / (rounds * slots + SLOTS_OF_FIRST))
}

async function bench(options: Options): Promise<void> {
  const system = await startSystem(options)
  const end = endOnSignal(system)
  try {
    const scenarios = system.scenarios.filter(({ name }) => options.only.includes(name))
    const plan: MeasurePlan = { ...options, slot: slotOf(options) }
    const { scenarios: figures, skipped, gatewayCalls } = await measure(system, scenarios, plan, log)
    const wants = (section: string): boolean => options.only.includes(section)
    const starts = wants(STARTS_SECTION) ? await measureStarts(system, log) : null
    const mcp = wants(MCP_SECTION) ? await measureMcp(system, log) : null
    const agents = wants(AGENTS_SECTION) ? await measureDispatch(system, options.rounds, log) : null
    log('checking the ledger')
    const ledger = await checkLedger(system, gatewayCalls)
    const report: BenchReport = {
      conditions: conditionsOf(plan),
      scenarios: figures,
      skipped,
      costs:
        wants(COSTS_SECTION) || wants(PRICES_SECTION)
          ? await countCosts(system, wants(COSTS_SECTION), log)
          : null,
      records: wants(RECORDS_SECTION) ? await measureRecordCpu(system, log) : null,
      starts,
      mcp,
      agents,
      ledger,
    }
    console.log(renderReport(report))
  } finally {
    await end()
  }
}

function conditionsOf(plan: MeasurePlan): Record<string, string | number> {
  const processors = cpus()
  return {
    machine: `${processors.length} x ${processors[0]?.model ?? 'unknown'}, load ${loadavg()[0]?.toFixed(1)} at the end`,
    runtime: 'workerd serve, the built bundle',
    rounds: `${plan.rounds} of each server in turn, ${plan.slot / 1_000} s each, ${plan.connections} connections unless said otherwise; latency with 1`,
    requests: 'about 1 KB unless said otherwise; the upstream answers at once, streams an event per packet',
    storage: STORAGE,
  }
}

async function profile(options: Options): Promise<void> {
  const [inspectorPort = 0] = await freePorts(1)
  const milliseconds = Math.min(15_000, (options.seconds * 1_000) / options.only.length)
  const plan = {
    inspectorPort,
    milliseconds,
    connections: options.connections,
    folder: join(ROOT, '.headgate'),
  }
  const system = await startSystem({ ...options, inspectorPort })
  const end = endOnSignal(system)
  try {
    for (const scenario of system.scenarios.filter(({ name }) => options.only.includes(name))) {
      await profileScenario(system, scenario, plan, log)
    }
  } finally {
    await end()
  }
}

/** Ends everything also when the bench is interrupted. @returns what to call when it is done */
function endOnSignal(system: BenchSystem): () => Promise<void> {
  const interrupted = (): void => void system.stop().finally(() => process.exit(130))
  process.once('SIGINT', interrupted)
  process.once('SIGTERM', interrupted)
  return async () => {
    process.off('SIGINT', interrupted)
    process.off('SIGTERM', interrupted)
    await system.stop()
  }
}

function log(line: string): void {
  process.stderr.write(`bench: ${line}\n`)
}

async function main(): Promise<void> {
  const options = readOptions()
  if (options === null) return console.log(USAGE)
  await (options.profile ? profile(options) : bench(options))
}

main().catch((error: unknown) => {
  const expected = error instanceof StartError || error instanceof BenchFailure
  console.error('bench:', expected ? error.message : error)
  process.exitCode = 1
})
