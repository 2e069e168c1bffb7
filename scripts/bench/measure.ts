import { setTimeout } from 'node:timers/promises'
import { figuresOf, type Sample, type ScenarioFigures, type TargetName } from './figures.ts'
import type { LoadPlan, LoadResult } from './load.ts'
import { runLoad } from './load.ts'
import { cpuMicroseconds, forgetPeak, peakBytes, untilIdle } from './process-usage.ts'
import { connectionsOf, isLarge, isLong, type Scenario } from './scenarios.ts'
import type { BenchSystem } from './system.ts'
import { runWrk } from './wrk.ts'

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
  /** Connections of throughput rounds; scenarios of large bodies have fewer. */
  connections: number
  /** Length of one throughput round of one target, in milliseconds; latency takes half of it. */
  slot: number
  generator: 'wrk' | 'own'
}

export interface Measurement {
  scenarios: ScenarioFigures[]
  /** Calls that the gateway answered in throughput and latency rounds. */
  gatewayCalls: number
}

/** A call failed, so whatever was measured does not count. */
export class BenchFailure extends Error {}

/** How long the ledger waits for company before it writes to Postgres (LEDGER_FLUSH_MS), and a little more. */
const DEFERRED_MS = 1_050
/** Longer than the gateway is idle between two writes to Postgres. */
const QUIET_MS = 400
const DEFERRED_LIMIT_MS = 10_000
/** As long as most of what is put off: LEDGER_FLUSH_MS. */
const SHORTEST_COVER_MS = 1_000
/** Enough for the runtime to have compiled what is hot. The proxies have little to compile. */
const WARM_UP_CALLS = 1_500
const WARM_UP_LIMIT_MS = 3_000
const PROXY_WARM_UP_LIMIT_MS = 1_000

/**
 * The order of a round. What the ledger puts off after the gateway's last call falls into the load on the first
 * target, of which only the CPU of its own process is compared.
 */
export function targetsOf(system: BenchSystem): Target[] {
  const { bare, roundTrips, gateway } = system
  return [
    { name: 'roundTrips', port: roundTrips.port, pid: roundTrips.pid, defers: false },
    { name: 'direct', port: Number(new URL(system.upstream).port), pid: null, defers: false },
    { name: 'bare', port: bare.port, pid: bare.pid, defers: false },
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
    const samples: Record<TargetName, Sample[]> = { direct: [], bare: [], roundTrips: [], headgate: [] }
    const pids = [system.gateway.pid, system.bare.pid]
    const peaks = pids.map(forgetPeak).every((forgotten) => forgotten)
    for (const target of targets) await meter.warmUp(target, scenario)
    for (let round = 1; round <= plan.rounds; round += 1) {
      tell(`${scenario.title}: round ${round} of ${plan.rounds}`)
      for (const target of targets) {
        samples[target.name].push(await meter.round(target, scenario, round === 1))
      }
    }
    const [headgate = 0, bare = 0] = pids.map(peakBytes)
    const connections = connectionsOf(scenario, plan.connections)
    measured.push(figuresOf(scenario, samples, { connections, peak: peaks ? { headgate, bare } : null }))
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
    const connections = connectionsOf(scenario, this.#plan.connections)
    const limit = target.defers ? WARM_UP_LIMIT_MS : PROXY_WARM_UP_LIMIT_MS
    // A run that asks for little time gets a short warm-up too.
    const milliseconds = Math.min(limit, limit * (this.#plan.slot / 1_000))
    await this.#load(target, scenario, { connections, milliseconds, calls: WARM_UP_CALLS })
  }

  /** @param first whether to measure also what no ratio needs: throughput of the upstream, latency of round trips */
  async round(target: Target, scenario: Scenario, first: boolean): Promise<Sample> {
    return {
      busy: first || target.name !== 'direct' ? await this.#busy(target, scenario) : null,
      calm: first || target.name !== 'roundTrips' ? await this.#calm(target, scenario) : null,
    }
  }

  async #busy(target: Target, scenario: Scenario): Promise<Sample['busy']> {
    const connections = connectionsOf(scenario, this.#plan.connections)
    const before = this.#cpu(target)
    const result = await this.#load(target, scenario, { connections, milliseconds: this.#plan.slot })
    await this.#settle(target)
    const used = this.#cpu(target) - before
    return {
      callsPerSecond: (result.calls / result.milliseconds) * 1_000,
      cpuPerCall: target.pid === null ? null : used / result.calls,
    }
  }

  async #calm(target: Target, scenario: Scenario): Promise<Sample['calm']> {
    const { slot } = this.#plan
    const milliseconds = isLarge(scenario) ? slot : slot / 2
    const { totals, firstBytes } = await this.#load(target, scenario, { connections: 1, milliseconds }, true)
    // Otherwise the load that it may fall into is over before the ledger writes.
    if (slot < SHORTEST_COVER_MS) await this.#settle(target)
    return { totals, firstBytes }
  }

  async #load(
    target: Target,
    scenario: Scenario,
    load: Omit<LoadPlan, 'port' | 'call'>,
    timed = false,
  ): Promise<LoadResult> {
    const call = target.name === 'headgate' ? scenario.call : scenario.baseline
    const own = timed || load.calls !== undefined || isLong(scenario) || this.#plan.generator === 'own'
    const result = await (own ? runLoad : runWrk)({ ...load, port: target.port, call })
    if (result.failures > 0 || result.calls === 0) {
      const reason = result.firstFailure ?? 'no call was answered in time'
      throw new BenchFailure(`${scenario.title}, ${target.name}: ${result.failures} failed: ${reason}`)
    }
    if (target.name === 'headgate') this.gatewayCalls += result.calls
    return result
  }

  #cpu({ pid }: Target): number {
    return pid === null ? 0 : cpuMicroseconds(pid)
  }

  async #settle({ pid, defers }: Target): Promise<void> {
    if (pid === null || !defers) return
    await setTimeout(DEFERRED_MS)
    await untilIdle(pid, QUIET_MS, DEFERRED_LIMIT_MS)
  }
}
