import type { ScenarioFigures, TargetName } from './figures.ts'
import type { LedgerFigures } from './ledger-check.ts'
import { mebibytes, ms, section, table, times, us, verdict } from './markdown.ts'
import type { ProfileSummary } from './profile.ts'
import { renderResponses } from './responses/report.ts'
import type { ResponsesFigures } from './responses/section.ts'
import type { RoundTripFigures, RoundTrips } from './round-trip-count.ts'

/** Everything a run found, as `--json` writes it. Times are in microseconds for CPU, else in milliseconds. */
export interface BenchReport {
  conditions: Record<string, string | number>
  scenarios: ScenarioFigures[]
  roundTrips: RoundTripFigures | null
  events: EventFigures | null
  responses: ResponsesFigures | null
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
    report.scenarios.length > 0 ? renderRatios(report.scenarios) : '',
    renderAims(report.scenarios),
    report.roundTrips ? renderRoundTrips(report.roundTrips) : '',
    report.events ? renderEvents(report.events) : '',
    report.responses ? renderResponses(report.responses) : '',
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

function renderRatios(scenarios: ScenarioFigures[]): string {
  const rows = scenarios.map((figures) => [
    figures.title + marksOf(figures),
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
      'its storage, and does nothing else. Added: milliseconds with one connection; no p99 of fewer than 100 calls.',
    ...notesOf(scenarios),
  )
}

const TRANSLATED_MARK = ' ¹'
const LONG_BODY_MARK = ' ²'
/** Bodies from here on say what a body costs rather than what a call does. */
const LONG_BODY_BYTES = 10_000

const isLongBody = ({ bodyBytes }: ScenarioFigures): boolean => bodyBytes >= LONG_BODY_BYTES

function marksOf(figures: ScenarioFigures): string {
  return (figures.translated ? TRANSLATED_MARK : '') + (isLongBody(figures) ? LONG_BODY_MARK : '')
}

function notesOf(scenarios: ScenarioFigures[]): string[] {
  const fewer = new Set(
    scenarios.filter(isLongBody).map(({ title, connections }) => `${title}: ${connections}`),
  )
  const translated =
    `${TRANSLATED_MARK.trim()} Translated: the other servers are sent the same conversation in the upstream’s own ` +
    'protocol and pass its answer on. The ratio is that of governance and translation together; it does not compare ' +
    'with the rows of one protocol.'
  const longBodies =
    `${LONG_BODY_MARK.trim()} Large bodies: the bare proxy passes bytes on as they come, Headgate holds and reads the ` +
    'whole body first. These rows do not compare with those of 1 KB, nor with each other where connections differ ' +
    `(${[...fewer].join('; ')}).`
  return [
    ...(scenarios.some((figures) => figures.translated) ? [translated] : []),
    ...(fewer.size > 0 ? [longBodies] : []),
  ]
}

/** The aims are about calls of about 1 KB that are not translated. */
function renderAims(scenarios: ScenarioFigures[]): string {
  const ordinary = scenarios.filter((figures) => figures.ordinary)
  if (ordinary.length === 0) return ''
  const throughput = Math.min(...ordinary.map(({ throughputRatio }) => throughputRatio))
  const added = Math.max(...ordinary.map((one) => one.addedOverBare.p50))
  return [
    'Aims, for bodies of 1 KB in the upstream’s own protocol:',
    '',
    `- at least ${THROUGHPUT_AIM} of the bare proxy's throughput: ${verdict(throughput >= THROUGHPUT_AIM)} (lowest ${throughput.toFixed(2)})`,
    `- less than ${ADDED_AIM_MS} ms added at the median: ${verdict(added < ADDED_AIM_MS)} (highest ${ms(added)})`,
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
    roundTrips: 'round trips only',
    headgate: 'Headgate',
  }
  const rows = scenarios.flatMap((scenario) =>
    Object.entries(scenario.targets).map(([name, figures]) => [
      scenario.title + marksOf(scenario),
      names[name as TargetName],
      figures.callsPerSecond.toFixed(figures.callsPerSecond < 100 ? 1 : 0),
      figures.cpuPerCall === null ? '' : us(figures.cpuPerCall),
      ms(figures.p50),
      ms(figures.p99),
      ms(figures.p999),
      String(figures.samples),
      scenario.events > 0 ? ms(figures.firstByteP50) : '',
    ]),
  )
  return section(
    'Absolute numbers, of this machine at this hour',
    table(
      ['scenario', 'server', 'calls/s', 'CPU per call', 'p50', 'p99', 'p99.9', 'calls timed', 'first event'],
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
