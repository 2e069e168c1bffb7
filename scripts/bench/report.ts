import type { DispatchFigures } from './agents/dispatch.ts'
import { renderDispatch } from './agents/report.ts'
import { renderAims } from './aims.ts'
import { type RecordCpu, renderRecordCpu } from './costs/record-cpu.ts'
import { renderCosts } from './costs/report.ts'
import type { CostFigures } from './costs/section.ts'
import type { ScenarioFigures, Spread, TargetName } from './figures.ts'
import type { LedgerFigures } from './ledger-check.ts'
import { ms, section, table, us } from './markdown.ts'
import { renderMcp } from './mcp/report.ts'
import type { McpFigures } from './mcp/section.ts'
import type { ProfileSummary } from './profile.ts'
import { renderPortkey, renderRatios, titleOf } from './ratio-report.ts'
import type { StartFigures } from './starts/cold-start.ts'
import { renderStarts } from './starts/report.ts'

/** Everything that a run measured; null for what was not requested. */
export interface BenchReport {
  conditions: Record<string, string | number>
  scenarios: ScenarioFigures[]
  /** Titles of the scenarios that were left out. */
  skipped: string[]
  costs: CostFigures | null
  records: RecordCpu | null
  starts: StartFigures | null
  mcp: McpFigures | null
  agents: DispatchFigures | null
  ledger: LedgerFigures
}

/** The report as Markdown: ratios first, absolute numbers last and only as context. */
export function renderReport(report: BenchReport): string {
  return [
    '# Headgate bench',
    renderConditions(report),
    report.scenarios.length + report.skipped.length > 0 ? renderRatios(report.scenarios, report.skipped) : '',
    renderAims(report.scenarios),
    renderPortkey(report.scenarios),
    report.costs ? renderCosts(report.costs) : '',
    report.records ? renderRecordCpu(report.records) : '',
    report.starts ? renderStarts(report.starts) : '',
    report.mcp ? renderMcp(report.mcp) : '',
    report.agents ? renderDispatch(report.agents) : '',
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
      String(figures.samples),
      spreadText(figures.busyTotal),
      ...(scenario.events > 0 ? [ms(figures.firstByteP50), spreadText(figures.busyFirstByte)] : ['', '']),
    ]),
  )
  return section(
    'Absolute numbers, of this machine at this hour',
    table(
      [
        'scenario',
        'server',
        'calls/s',
        'CPU per call',
        'p50',
        'p99',
        'calls timed',
        'busy: p50, p99, longest',
        'first event',
        'busy: p50, p99, longest',
      ],
      rows,
    ),
  )
}

const spreadText = ({ p50, p99, longest }: Spread): string => [p50, p99, longest].map(ms).join(', ')

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
