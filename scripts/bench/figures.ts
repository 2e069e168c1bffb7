import { isOrdinary, type Scenario } from './scenarios.ts'
import { median, quantile } from './statistics.ts'

export type TargetName = 'direct' | 'bare' | 'roundTrips' | 'headgate'

/** What one target did in one round; what a round leaves out is null. */
export interface Sample {
  /** With many connections. */
  busy: { callsPerSecond: number; cpuPerCall: number | null } | null
  /** Milliseconds of each call with one connection. */
  calm: { totals: number[]; firstBytes: number[] } | null
}

/** What one target did in one scenario: medians over the rounds. */
export interface TargetFigures {
  callsPerSecond: number
  /** User and system time of its process in microseconds, background work included; null for the upstream. */
  cpuPerCall: number | null
  /** Milliseconds with one connection. */
  p50: number
  /** Null with fewer calls than it takes for one to lie beyond, as `p999`, which is of all rounds together. */
  p99: number | null
  p999: number | null
  firstByteP50: number
  /** Calls with one connection. */
  samples: number
}

/** Differences within a round, then the median over rounds: what the machine did meanwhile falls out. */
export interface AddedFigures {
  p50: number
  /** Null where either has none. */
  p99: number | null
  firstByteP50: number
}

export interface ScenarioFigures {
  scenario: string
  title: string
  events: number
  bodyBytes: number
  translated: boolean
  /** Whether the aims are about it. */
  ordinary: boolean
  /** Connections of its throughput rounds. */
  connections: number
  targets: Record<TargetName, TargetFigures>
  /** The gateway over the bare proxy. */
  cpuRatio: number
  throughputRatio: number
  /** The proxy that makes the same round trips over the bare proxy: the part no code of ours can save. */
  roundTripCpuRatio: number
  addedOverBare: AddedFigures
  addedOverDirect: AddedFigures
  /** The most resident bytes of each process in this scenario; null where the system does not tell. */
  peak: { headgate: number; bare: number } | null
}

const LEAST_FOR_P99 = 100
const LEAST_FOR_P999 = 1_000

/** @param samples of each target, one for each round */
export function figuresOf(
  scenario: Scenario,
  samples: Record<TargetName, Sample[]>,
  { connections, peak }: Pick<ScenarioFigures, 'connections' | 'peak'>,
): ScenarioFigures {
  const { headgate, bare, direct, roundTrips } = samples
  const { name, title, events, bodyBytes, translated } = scenario
  const cpu = ({ busy }: Sample): number => busy?.cpuPerCall ?? Number.NaN
  const throughput = ({ busy }: Sample): number => busy?.callsPerSecond ?? Number.NaN
  return {
    ...{ scenario: name, title, events, bodyBytes, translated, ordinary: isOrdinary(scenario), connections },
    targets: {
      direct: medians(direct),
      bare: medians(bare),
      roundTrips: medians(roundTrips),
      headgate: medians(headgate),
    },
    cpuRatio: overRounds(headgate, bare, (ours, theirs) => cpu(ours) / cpu(theirs)),
    throughputRatio: overRounds(headgate, bare, (ours, theirs) => throughput(ours) / throughput(theirs)),
    roundTripCpuRatio: overRounds(roundTrips, bare, (one, other) => cpu(one) / cpu(other)),
    addedOverBare: added(headgate, bare),
    addedOverDirect: added(headgate, direct),
    peak,
  }
}

function medians(samples: Sample[]): TargetFigures {
  const busy = samples.flatMap((sample) => sample.busy ?? [])
  const calm = samples.flatMap((sample) => sample.calm ?? [])
  const all = calm.flatMap(({ totals }) => totals)
  const cpu = busy.flatMap(({ cpuPerCall }) => cpuPerCall ?? [])
  return {
    callsPerSecond: median(busy.map(({ callsPerSecond }) => callsPerSecond)),
    cpuPerCall: cpu.length === 0 ? null : median(cpu),
    p50: median(calm.map(({ totals }) => median(totals))),
    p99: all.length < LEAST_FOR_P99 ? null : median(calm.map(({ totals }) => quantile(totals, 0.99))),
    p999: all.length < LEAST_FOR_P999 ? null : quantile(all, 0.999),
    firstByteP50: median(calm.map(({ firstBytes }) => median(firstBytes))),
    samples: all.length,
  }
}

function added(ours: Sample[], theirs: Sample[]): AddedFigures {
  const difference = (of: (calm: NonNullable<Sample['calm']>) => number): number => {
    const time = ({ calm }: Sample): number => (calm === null ? Number.NaN : of(calm))
    return overRounds(ours, theirs, (one, other) => time(one) - time(other))
  }
  const enough = [ours, theirs].every((samples) => medians(samples).p99 !== null)
  return {
    p50: difference(({ totals }) => median(totals)),
    p99: enough ? difference(({ totals }) => quantile(totals, 0.99)) : null,
    firstByteP50: difference(({ firstBytes }) => median(firstBytes)),
  }
}

function overRounds(
  ours: Sample[],
  theirs: Sample[],
  compare: (one: Sample, other: Sample) => number,
): number {
  return median(
    ours.flatMap((sample, round) => {
      const other = theirs[round]
      return other === undefined ? [] : [compare(sample, other)]
    }),
  )
}
