import type { LedgerFigures } from './ledger-check.ts'
import type { ScenarioFigures, TargetName } from './measure.ts'
import type { ProfileSummary } from './profile.ts'
import type { RoundTripFigures, RoundTrips } from './round-trip-count.ts'

/** Everything a run found, as `--json` writes it. Times are in microseconds for CPU, else in milliseconds. */
export interface BenchReport {
  conditions: Record<string, string | number>
  scenarios: ScenarioFigures[]
  roundTrips: RoundTripFigures | null
  events: EventFigures | null
  memory: MemoryFigures
  ledger: LedgerFigures
}

/** CPU for one streamed event: the slope between a short and a long stream, so that the call itself falls out. */
export interface EventFigures {
  bare: number
  headgate: number
}

/** Resident bytes of the gateway's process and of the bare proxy's. */
export interface MemoryFigures {
  idle: { headgate: number; bare: number }
  after: { headgate: number; bare: number }
}

const THROUGHPUT_AIM = 0.5
const ADDED_AIM_MS = 1

/** CPU per event from two streamed scenarios, or null when one of them was not measured. */
export function eventFigures(scenarios: ScenarioFigures[]): EventFigures | null {
  const short = scenarios.find(({ scenario }) => scenario === 'chat-stream')
  const long = scenarios.find(({ scenario }) => scenario === 'chat-long-stream')
  if (short === undefined || long === undefined) return null
  const slope = (target: TargetName): number => {
    const cpu = (figures: ScenarioFigures): number => figures.targets[target].cpuPerCall ?? Number.NaN
    return (cpu(long) - cpu(short)) / (long.events - short.events)
  }
  return { bare: slope('bare'), headgate: slope('headgate') }
}

/** The report as Markdown: ratios first, absolute numbers last and only as context. */
export function renderReport(report: BenchReport): string {
  return [
    '# Headgate bench',
    renderConditions(report),
    renderRatios(report.scenarios),
    renderAims(report.scenarios),
    report.roundTrips ? renderRoundTrips(report.roundTrips) : '',
    report.events ? renderEvents(report.events) : '',
    renderMemory(report.memory),
    renderAbsolute(report.scenarios),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function renderConditions({ conditions, ledger }: BenchReport): string {
  const list = Object.entries(conditions).map(([name, value]) => `- ${name}: ${value}`)
  return [
    ...list,
    '- governance: all on; owner key, limits and credits out of reach; ' +
      `${ledger.records} audit records in Postgres, ${ledger.settled} micro-credits settled`,
    '- machines are shared and differ: compare ratios within one run, and nothing else',
  ].join('\n')
}

function renderRatios(scenarios: ScenarioFigures[]): string {
  const rows = scenarios.map((figures) => [
    figures.title,
    times(figures.cpuRatio),
    times(figures.roundTripCpuRatio),
    figures.throughputRatio.toFixed(2),
    ms(figures.addedOverBare.p50),
    ms(figures.addedOverBare.p99),
    ms(figures.addedOverDirect.p50),
    ms(figures.addedOverDirect.p99),
    figures.events > 0 ? ms(figures.addedOverBare.firstByteP50) : '',
  ])
  return section(
    'Headgate over a bare proxy in the same runtime',
    table(
      [
        'scenario',
        'CPU per call',
        'of it round trips',
        'calls per second',
        'added p50',
        'added p99',
        'p50 over direct',
        'p99 over direct',
        'added time to first event',
      ],
      rows,
    ),
    'CPU: user and system time of the runtime, work put off included, over the bare proxy’s. "Of it round trips": the ' +
      'same figure for a proxy that makes the same requests to Redis and the same calls of an object that writes to ' +
      'its storage, and does nothing else. Added: milliseconds with one connection.',
  )
}

function renderAims(scenarios: ScenarioFigures[]): string {
  const verdict = (met: boolean): string => (met ? 'met' : 'not met')
  const throughput = Math.min(...scenarios.map(({ throughputRatio }) => throughputRatio))
  const added = Math.max(
    ...scenarios.filter(({ events }) => events < 100).map((one) => one.addedOverBare.p50),
  )
  return [
    `- aim: at least ${THROUGHPUT_AIM} of the bare proxy's throughput: ${verdict(throughput >= THROUGHPUT_AIM)} (lowest ${throughput.toFixed(2)})`,
    `- aim: less than ${ADDED_AIM_MS} ms added at the median: ${verdict(added < ADDED_AIM_MS)} (highest ${ms(added)})`,
  ].join('\n')
}

function renderRoundTrips({ first, steady, calls }: RoundTripFigures): string {
  const row = (name: string, trips: RoundTrips): string[] => [
    name,
    ...[trips.redis, trips.postgres, trips.upstream].map((number) => String(Number(number.toFixed(3)))),
  ]
  return section(
    'Network round trips per call',
    table(
      ['', 'Redis', 'Postgres', 'upstream'],
      [row('first call of a process', first), row(`among ${calls} calls`, steady)],
    ),
    'On Cloudflare the ledger’s object is a round trip too: two for each call, one of them before dispatch.',
  )
}

function renderEvents({ bare, headgate }: EventFigures): string {
  return section(
    'CPU per streamed event',
    table(
      ['bare proxy', 'Headgate', 'over it', 'ratio'],
      [[us(bare), us(headgate), us(headgate - bare), times(headgate / bare)]],
    ),
  )
}

function renderMemory({ idle, after }: MemoryFigures): string {
  const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`
  return section(
    'Memory of the process',
    table(
      ['', 'idle', 'after the run'],
      [
        ['Headgate', mebibytes(idle.headgate), mebibytes(after.headgate)],
        ['bare proxy', mebibytes(idle.bare), mebibytes(after.bare)],
      ],
    ),
  )
}

function renderAbsolute(scenarios: ScenarioFigures[]): string {
  const names: Record<TargetName, string> = {
    direct: 'direct',
    bare: 'bare proxy',
    roundTrips: 'round trips only',
    headgate: 'Headgate',
  }
  const rows = scenarios.flatMap(({ title, events, targets }) =>
    Object.entries(targets).map(([name, figures]) => [
      title,
      names[name as TargetName],
      figures.callsPerSecond.toFixed(0),
      figures.cpuPerCall === null ? '' : us(figures.cpuPerCall),
      ms(figures.p50),
      ms(figures.p99),
      events > 0 ? ms(figures.firstByteP50) : '',
    ]),
  )
  return section(
    'Absolute numbers, of this machine at this hour',
    table(['scenario', 'server', 'calls/s', 'CPU per call', 'p50', 'p99', 'first event'], rows),
  )
}

/** The profile as Markdown. @param calls how many calls it covers @param most rows of each table */
export function renderProfile(title: string, summary: ProfileSummary, calls: number, most = 30): string {
  const perCall = (time: number): string => (time / calls).toFixed(1)
  const share = (time: number): string => `${((time / summary.busy) * 100).toFixed(1)} %`
  const groups = summary.groups.slice(0, most).map(({ group, self }) => [group, perCall(self), share(self)])
  const functions = summary.functions
    .slice(0, most)
    .map(({ name, place, self, total }) => [name, place, perCall(self), perCall(total), share(self)])
  const ours = summary.functions
    .filter(({ place }) => place !== '')
    .sort((one, other) => other.total - one.total)
    .slice(0, most)
    .map(({ name, place, self, total }) => [name, place, perCall(self), perCall(total)])
  return [
    `# Profile: ${title}, ${calls} calls, ${perCall(summary.busy)} µs of JavaScript and what it calls per call`,
    section('By module', table(['module', 'self µs per call', 'share'], groups)),
    section('Functions by their own time', table(['function', 'place', 'self', 'total', 'share'], functions)),
    section('Functions by all they call', table(['function', 'place', 'self', 'total'], ours)),
  ].join('\n\n')
}

const times = (ratio: number): string => `${ratio.toFixed(1)}x`
const ms = (value: number): string => `${value.toFixed(2)} ms`
const us = (value: number): string => `${value.toFixed(value < 100 ? 1 : 0)} µs`

const section = (title: string, ...parts: string[]): string => [`## ${title}`, ...parts].join('\n\n')

function table(head: string[], rows: string[][]): string {
  const widths = head.map((name, column) =>
    Math.max(3, name.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (cells: string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}
