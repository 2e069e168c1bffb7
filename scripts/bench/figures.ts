import type { AimKind, Scenario } from './scenarios.ts'
import { median, quantile } from './statistics.ts'

export type TargetName = 'direct' | 'bare' | 'portkey' | 'headgate'

/** Figures of one target in one round; null for a figure that the round does not measure. */
export interface Sample {
  /** Calls with many connections. */
  busy: BusySample | null
  /** Milliseconds of each call with one connection. */
  calm: { totals: number[]; firstBytes: number[] } | null
}

export interface BusySample {
  callsPerSecond: number
  cpuPerCall: number | null
  /** Milliseconds to the end of a body, and to its first byte: at the median, for one of a hundred, at the most. */
  total: Spread
  firstByte: Spread
}

/** Milliseconds of the calls of one round. */
export interface Spread {
  p50: number
  p99: number
  longest: number
}

export const spreadOf = (values: readonly number[]): Spread => ({
  p50: median(values),
  p99: quantile(values, 0.99),
  longest: quantile(values, 1),
})

/** Figures of one target in one scenario: medians over the rounds. */
export interface TargetFigures {
  callsPerSecond: number
  /** User and system time of its process in microseconds, background work included; null for the upstream. */
  cpuPerCall: number | null
  /** Milliseconds with one connection. */
  p50: number
  /** Null where the calls are too few for it. */
  p99: number | null
  firstByteP50: number
  /** With many connections; the longest over all rounds. */
  busyTotal: Spread
  busyFirstByte: Spread
  /** Calls with one connection. */
  samples: number
}

/**
 * Compares two targets, by ratio or by difference in milliseconds: within each round, then as the median over rounds.
 * Other load of the machine affects both targets of a round and cancels out.
 */
export interface Comparison {
  cpuRatio: number
  throughputRatio: number
  /** Added at the median with one connection. */
  addedP50: number
  /** Null where either target has no p99. */
  addedP99: number | null
  addedFirstByte: number
  /** Added to the first byte with many connections, at the median. */
  addedBusyFirstByte: number
  /** With many connections, at the 99th percentile. */
  totalP99Ratio: number
  firstByteP99Ratio: number
}

export interface ScenarioFigures {
  scenario: string
  title: string
  events: number
  bodyBytes: number
  translated: boolean
  aims: AimKind | null
  /** Connections of its throughput rounds. */
  connections: number
  targets: Partial<Record<TargetName, TargetFigures>>
  /** The gateway over the bare proxy. */
  overBare: Comparison
  addedOverDirect: Pick<Comparison, 'addedP50' | 'addedP99'>
  /** Portkey over the bare proxy; null where it is not installed or does not take such calls. */
  portkeyOverBare: Comparison | null
}

const LEAST_FOR_P99 = 100

/** @param samples of each target that took part, one for each round. @param connections of the throughput rounds */
export function figuresOf(
  scenario: Scenario,
  samples: ReadonlyMap<TargetName, Sample[]>,
  connections: number,
): ScenarioFigures {
  const { name, title, events, bodyBytes, translated, aims } = scenario
  const of = (target: TargetName): Sample[] => samples.get(target) ?? []
  const { addedP50, addedP99 } = compare(of('headgate'), of('direct'))
  return {
    scenario: name,
    title,
    events,
    bodyBytes,
    translated,
    aims,
    connections,
    targets: Object.fromEntries([...samples].map(([target, rounds]) => [target, medians(rounds)])),
    overBare: compare(of('headgate'), of('bare')),
    addedOverDirect: { addedP50, addedP99 },
    portkeyOverBare: samples.has('portkey') ? compare(of('portkey'), of('bare')) : null,
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
    firstByteP50: median(calm.map(({ firstBytes }) => median(firstBytes))),
    busyTotal: spreadOver(busy.map(({ total }) => total)),
    busyFirstByte: spreadOver(busy.map(({ firstByte }) => firstByte)),
    samples: all.length,
  }
}

const spreadOver = (rounds: Spread[]): Spread => ({
  p50: median(rounds.map(({ p50 }) => p50)),
  p99: median(rounds.map(({ p99 }) => p99)),
  longest: Math.max(...rounds.map(({ longest }) => longest)),
})

function compare(ours: Sample[], theirs: Sample[]): Comparison {
  const busy = (of: (one: BusySample, other: BusySample) => number): number =>
    overRounds(ours, theirs, (one, other) => (one.busy && other.busy ? [of(one.busy, other.busy)] : []))
  const calm = (of: (calm: NonNullable<Sample['calm']>) => number): number =>
    overRounds(ours, theirs, (one, other) => (one.calm && other.calm ? [of(one.calm) - of(other.calm)] : []))
  const enough = [ours, theirs].every((samples) => medians(samples).p99 !== null)
  const cpu = ({ cpuPerCall }: BusySample): number => cpuPerCall ?? Number.NaN
  return {
    cpuRatio: busy((one, other) => cpu(one) / cpu(other)),
    throughputRatio: busy((one, other) => one.callsPerSecond / other.callsPerSecond),
    addedP50: calm(({ totals }) => median(totals)),
    addedP99: enough ? calm(({ totals }) => quantile(totals, 0.99)) : null,
    addedFirstByte: calm(({ firstBytes }) => median(firstBytes)),
    addedBusyFirstByte: busy((one, other) => one.firstByte.p50 - other.firstByte.p50),
    totalP99Ratio: busy((one, other) => one.total.p99 / other.total.p99),
    firstByteP99Ratio: busy((one, other) => one.firstByte.p99 / other.firstByte.p99),
  }
}

/** The median over the rounds in which both were measured. */
function overRounds(ours: Sample[], theirs: Sample[], of: (one: Sample, other: Sample) => number[]): number {
  return median(
    ours.flatMap((sample, round) => {
      const other = theirs[round]
      return other === undefined ? [] : of(sample, other)
    }),
  )
}
