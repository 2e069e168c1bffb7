import type { LoadPlan, LoadResult } from './load.ts'
import { runLoad } from './load.ts'
import { cpuMicroseconds, untilIdle } from './process-usage.ts'
import type { Scenario, ScenarioName } from './scenarios.ts'
import { median, quantile } from './statistics.ts'
import type { BenchSystem } from './system.ts'
import { runWrk } from './wrk.ts'

export type TargetName = 'direct' | 'bare' | 'roundTrips' | 'headgate'

/** One of the servers that are compared. */
export interface Target {
  name: TargetName
  port: number
  /** Process whose CPU is counted; null for the upstream, whose CPU is nobody's question. */
  pid: number | null
  /** Whether it puts work off that a round has to wait for. */
  defers: boolean
}

export interface MeasurePlan {
  rounds: number
  connections: number
  /** Length of one throughput round of one target, in milliseconds; latency takes half of it. */
  slot: number
  generator: 'wrk' | 'own'
}

/** What one target did in one scenario: medians over the rounds. */
export interface TargetFigures {
  callsPerSecond: number
  /** User and system time of its process, background work included; null for the upstream. */
  cpuPerCall: number | null
  /** Milliseconds with one connection. */
  p50: number
  p99: number
  firstByteP50: number
}

/** Differences within a round, then the median over rounds: what the machine did meanwhile falls out. */
export interface AddedFigures {
  p50: number
  p99: number
  firstByteP50: number
}

export interface ScenarioFigures {
  scenario: ScenarioName
  title: string
  events: number
  targets: Record<TargetName, TargetFigures>
  /** The gateway over the bare proxy. */
  cpuRatio: number
  throughputRatio: number
  /** The proxy that makes the same round trips over the bare proxy: the part no code of ours can save. */
  roundTripCpuRatio: number
  addedOverBare: AddedFigures
  addedOverDirect: AddedFigures
}

export interface Measurement {
  scenarios: ScenarioFigures[]
  /** Calls that the gateway answered in throughput and latency rounds. */
  gatewayCalls: number
}

/** A call failed, so whatever was measured does not count. */
export class BenchFailure extends Error {}

/** How long the ledger waits for company before it writes to Postgres (LEDGER_FLUSH_MS), and a little more. */
const DEFERRED_MS = 1_300
const DEFERRED_LIMIT_MS = 10_000
/** Enough for the runtime to have compiled what is hot. */
const WARM_UP_CALLS = 1_500
const WARM_UP_LIMIT_MS = 4_000

interface Sample {
  callsPerSecond: number
  cpuPerCall: number | null
  p50: number
  p99: number
  firstByteP50: number
}

export function targetsOf(system: BenchSystem): Target[] {
  const { bare, roundTrips, gateway } = system
  return [
    { name: 'direct', port: Number(new URL(system.upstream).port), pid: null, defers: false },
    { name: 'bare', port: bare.port, pid: bare.pid, defers: false },
    { name: 'roundTrips', port: roundTrips.port, pid: roundTrips.pid, defers: false },
    { name: 'headgate', port: gateway.port, pid: gateway.pid, defers: true },
  ]
}

/**
 * Measures every scenario: its targets are warmed up, then take turns for as many rounds as the plan has.
 *
 * @param tell called with a line on what is being done
 * @throws BenchFailure when a single call fails
 */
export async function measure(
  system: BenchSystem,
  scenarios: Scenario[],
  plan: MeasurePlan,
  tell: (line: string) => void,
): Promise<Measurement> {
  const targets = targetsOf(system)
  const meter = new Meter(plan)
  const measured: ScenarioFigures[] = []
  for (const scenario of scenarios) {
    for (const target of targets) await meter.warmUp(target, scenario)
    const samples = new Map<TargetName, Sample[]>(targets.map(({ name }) => [name, []]))
    for (let round = 1; round <= plan.rounds; round += 1) {
      tell(`${scenario.title}: round ${round} of ${plan.rounds}`)
      for (const target of targets) samples.get(target.name)?.push(await meter.round(target, scenario))
    }
    measured.push(figuresOf(scenario, samples))
  }
  return { scenarios: measured, gatewayCalls: meter.gatewayCalls }
}

class Meter {
  readonly #plan: MeasurePlan
  gatewayCalls = 0

  constructor(plan: MeasurePlan) {
    this.#plan = plan
  }

  async warmUp(target: Target, scenario: Scenario): Promise<void> {
    const { port } = target
    const { connections } = this.#plan
    await this.#load(target, {
      ...{ port, scenario, connections, calls: WARM_UP_CALLS, milliseconds: WARM_UP_LIMIT_MS },
    })
    await this.#settle(target)
  }

  async round(target: Target, scenario: Scenario): Promise<Sample> {
    const { connections, slot } = this.#plan
    const { port } = target
    const before = this.#cpu(target)
    const busy = await this.#load(target, { port, scenario, connections, milliseconds: slot })
    await this.#settle(target)
    const used = this.#cpu(target) - before
    const calm = await this.#load(target, { port, scenario, connections: 1, milliseconds: slot / 2 }, true)
    await this.#settle(target)
    return {
      callsPerSecond: (busy.calls / busy.milliseconds) * 1_000,
      cpuPerCall: target.pid === null ? null : used / busy.calls,
      p50: median(calm.totals),
      p99: quantile(calm.totals, 0.99),
      firstByteP50: median(calm.firstBytes),
    }
  }

  /** A long stream that wrk cuts off at the end of its time would count in CPU, and not in calls. */
  #generatorOf(plan: LoadPlan, timed: boolean): (plan: LoadPlan) => Promise<LoadResult> {
    const own = timed || plan.calls !== undefined || plan.scenario.events > 100
    return own || this.#plan.generator === 'own' ? runLoad : runWrk
  }

  async #load(target: Target, plan: LoadPlan, timed = false): Promise<LoadResult> {
    const result = await this.#generatorOf(plan, timed)(plan)
    if (result.failures > 0 || result.calls === 0) {
      const reason = result.firstFailure ?? 'no call was answered in time'
      throw new BenchFailure(`${plan.scenario.title}, ${target.name}: ${result.failures} failed: ${reason}`)
    }
    if (target.name === 'headgate') this.gatewayCalls += result.calls
    return result
  }

  #cpu({ pid }: Target): number {
    return pid === null ? 0 : cpuMicroseconds(pid)
  }

  async #settle({ pid, defers }: Target): Promise<void> {
    if (pid !== null && defers) await untilIdle(pid, DEFERRED_MS, DEFERRED_LIMIT_MS)
  }
}

function figuresOf(scenario: Scenario, samples: Map<TargetName, Sample[]>): ScenarioFigures {
  const of = (name: TargetName): Sample[] => samples.get(name) ?? []
  const headgate = of('headgate')
  const bare = of('bare')
  const targets = Object.fromEntries([...samples].map(([name, list]) => [name, medians(list)])) as Record<
    TargetName,
    TargetFigures
  >
  const cpu = (sample: Sample): number => sample.cpuPerCall ?? Number.NaN
  return {
    scenario: scenario.name,
    title: scenario.title,
    events: scenario.events,
    targets,
    cpuRatio: overRounds(headgate, bare, (ours, theirs) => cpu(ours) / cpu(theirs)),
    throughputRatio: overRounds(
      headgate,
      bare,
      (ours, theirs) => ours.callsPerSecond / theirs.callsPerSecond,
    ),
    roundTripCpuRatio: overRounds(of('roundTrips'), bare, (one, other) => cpu(one) / cpu(other)),
    addedOverBare: added(headgate, bare),
    addedOverDirect: added(headgate, of('direct')),
  }
}

function medians(samples: Sample[]): TargetFigures {
  const middle = (pick: (sample: Sample) => number): number => median(samples.map(pick))
  return {
    callsPerSecond: middle((sample) => sample.callsPerSecond),
    cpuPerCall: samples[0]?.cpuPerCall === null ? null : middle((sample) => sample.cpuPerCall ?? Number.NaN),
    p50: middle((sample) => sample.p50),
    p99: middle((sample) => sample.p99),
    firstByteP50: middle((sample) => sample.firstByteP50),
  }
}

function added(ours: Sample[], theirs: Sample[]): AddedFigures {
  return {
    p50: overRounds(ours, theirs, (one, other) => one.p50 - other.p50),
    p99: overRounds(ours, theirs, (one, other) => one.p99 - other.p99),
    firstByteP50: overRounds(ours, theirs, (one, other) => one.firstByteP50 - other.firstByteP50),
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
