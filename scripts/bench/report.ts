import { renderAgents } from './agents/report.ts'
import type { AgentsFigures } from './agents/section.ts'
import { renderAims } from './aims.ts'
import { renderCarriers } from './carriers/report.ts'
import type { CarrierRow } from './carriers/section.ts'
import type { ScenarioFigures, TargetName } from './figures.ts'
import type { LedgerFigures } from './ledger-check.ts'
import { mebibytes, ms, section, table, times, us } from './markdown.ts'
import { renderMcp } from './mcp/report.ts'
import type { McpFigures } from './mcp/section.ts'
import type { ProfileSummary } from './profile.ts'
import { renderPortkey, renderRatios, titleOf } from './ratio-report.ts'
import { renderResponses } from './responses/report.ts'
import type { ResponsesFigures } from './responses/section.ts'
import type { RoundTripFigures, RoundTrips } from './round-trip-count.ts'
import { renderTools } from './tools/report.ts'
import type { ToolsFigures } from './tools/section.ts'

/** Everything a run found, as `--json` writes it. Times are in microseconds for CPU, else in milliseconds. */
export interface BenchReport {
  conditions: Record<string, string | number>
  scenarios: ScenarioFigures[]
  roundTrips: RoundTripFigures | null
  events: EventFigures | null
  responses: ResponsesFigures | null
  tools: ToolsFigures | null
  mcp: McpFigures | null
  agents: AgentsFigures | null
  carriers: CarrierRow[] | null
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

/** CPU per event from two streamed scenarios, or null when one of them was not measured. */
export function eventFigures(scenarios: ScenarioFigures[]): EventFigures | null {
  const short = scenarios.find(({ scenario }) => scenario === 'chat-stream')
  const long = scenarios.find(({ scenario }) => scenario === 'chat-long-stream')
  if (short === undefined || long === undefined) return null
  const slope = (target: TargetName): number => {
    const cpu = (figures: ScenarioFigures): number => figures.targets[target]?.cpuPerCall ?? Number.NaN
    return (cpu(long) - cpu(short)) / (long.events - short.events)
  }
  return { bare: slope('bare'), headgate: slope('headgate') }
}

/** The report as Markdown: ratios first, absolute numbers last and only as context. */
export function renderReport(report: BenchReport): string {
  return [
    '# Headgate bench',
    renderConditions(report),
    report.scenarios.length > 0 ? renderRatios(report.scenarios) : '',
    renderAims(report.scenarios),
    renderPortkey(report.scenarios),
    report.roundTrips ? renderRoundTrips(report.roundTrips) : '',
    report.events ? renderEvents(report.events) : '',
    report.responses ? renderResponses(report.responses) : '',
    report.tools ? renderTools(report.tools) : '',
    report.mcp ? renderMcp(report.mcp) : '',
    report.agents ? renderAgents(report.agents) : '',
    report.carriers ? renderCarriers(report.carriers) : '',
    report.scenarios.length > 0 ? renderMemory(report) : '',
    report.scenarios.length > 0 ? renderAbsolute(report.scenarios) : '',
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
    'On Cloudflare the ledger’s object is a round trip too, which calls of one isolate share.',
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

function renderMemory({ memory: { idle, after }, scenarios }: BenchReport): string {
  const row = (name: string, { headgate, bare }: MemoryFigures['idle']): string[] => [
    name,
    mebibytes(headgate),
    mebibytes(bare),
  ]
  const peaks = scenarios.flatMap(({ title, connections, peak }) =>
    peak === null ? [] : [row(`most in ${title}, ${connections} connections`, peak)],
  )
  return section(
    'Memory of the process',
    table(['', 'Headgate', 'bare proxy'], [row('idle', idle), ...peaks, row('after the run', after)]),
    'Resident memory, code included. What a scenario took stays with the process in part, so that a peak may be that ' +
      'of an earlier scenario.',
  )
}

function renderAbsolute(scenarios: ScenarioFigures[]): string {
  const names: Record<TargetName, string> = {
    direct: 'direct',
    bare: 'bare proxy',
    portkey: 'Portkey',
    headgate: 'Headgate',
  }
  const rows = scenarios.flatMap((scenario) =>
    Object.entries(scenario.targets).map(([name, figures]) => [
      titleOf(scenario),
      names[name as TargetName],
      figures.callsPerSecond.toFixed(figures.callsPerSecond < 100 ? 1 : 0),
      figures.cpuPerCall === null ? '' : us(figures.cpuPerCall),
      ms(figures.p50),
      ms(figures.p99),
      ms(figures.p999),
      String(figures.samples),
      ...(scenario.events > 0 ? [ms(figures.firstByteP50), ms(figures.busyFirstByteP50)] : ['', '']),
    ]),
  )
  return section(
    'Absolute numbers, of this machine at this hour',
    table(
      [
        ...['scenario', 'server', 'calls/s', 'CPU per call', 'p50', 'p99', 'p99.9', 'calls timed'],
        ...['first event', 'the same, busy'],
      ],
      rows,
    ),
    'The p99.9 is of all rounds together, and only of 1,000 calls or more.',
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
