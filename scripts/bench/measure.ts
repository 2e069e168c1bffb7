import { setTimeout } from 'node:timers/promises'
import { figuresOf, type Sample, type ScenarioFigures, spreadOf, type TargetName } from './figures.ts'
import { type LoadPlan, type LoadResult, runLoad } from './load.ts'
import { portkeyCall } from './portkey.ts'
import { cpuMicroseconds, untilIdle } from './process-usage.ts'
import { type Call, connectionsOf, isLarge, type Scenario } from './scenarios.ts'
import type { BenchSystem } from './system.ts'
import { hasWrk, runWrk } from './wrk.ts'

/** A server that takes part in a comparison. */
export interface Target {
  name: TargetName
  port: number
  /** Process whose CPU is counted; null for the upstream, whose CPU is not measured. */
  pid: number | null
  /** Whether it puts work off that a round has to wait for. */
  defers: boolean
  callOf(scenario: Scenario): Call
}

export interface MeasurePlan {
  rounds: number
  /** Connections of throughput rounds; scenarios of large bodies have fewer. */
  connections: number
  /** Length of one throughput round of one target, in milliseconds; latency takes half of it. */
  slot: number
}

export interface Measurement {
  scenarios: ScenarioFigures[]
  /** Titles of the scenarios that were left out, because the program that makes their load is not installed. */
  skipped: string[]
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
/** Enough for the runtime to have compiled what is hot. The proxies have little to compile. */
const WARM_UP_CALLS = 1_500
const WARM_UP_LIMIT_MS = 3_000
const PROXY_WARM_UP_LIMIT_MS = 1_000
const PROBE_LIMIT_MS = 5_000

/** The order of a round. */
export function targetsOf(system: BenchSystem): Target[] {
  const { bare, portkey, gateway, upstream } = system
  const callOf = ({ baseline }: Scenario): Call => baseline
  const direct = { name: 'direct', port: Number(new URL(upstream).port), pid: null } as const
  return [
    { ...direct, defers: false, callOf },
    { name: 'bare', port: bare.port, pid: bare.pid, defers: false, callOf },
    ...(portkey === null
      ? []
      : [
          {
            name: 'portkey' as const,
            port: portkey.port,
            pid: portkey.pid,
            defers: false,
            callOf: (scenario: Scenario) => portkeyCall(scenario, upstream),
          },
        ]),
    { name: 'headgate', port: gateway.port, pid: gateway.pid, defers: true, callOf: ({ call }) => call },
  ]
}

/**
 * Measures every scenario: its targets are warmed up, then take turns for as many rounds as the plan has.
 *
 * @param log called with a line on what is being done
 * @throws BenchFailure when a single call fails
 */
export async function measure(
  system: BenchSystem,
  scenarios: Scenario[],
  plan: MeasurePlan,
  log: (line: string) => void,
): Promise<Measurement> {
  const all = targetsOf(system)
  const meter = new Meter(plan)
  const measured: ScenarioFigures[] = []
  const possible = scenarios.filter(({ byWrk }) => !byWrk || hasWrk())
  for (const scenario of possible) {
    const targets: Target[] = []
    for (const target of all) if (await takesPart(target, scenario)) targets.push(target)
    const samples = new Map<TargetName, Sample[]>(targets.map(({ name }) => [name, []]))
    for (const target of targets) await meter.warmUp(target, scenario)
    for (let round = 1; round <= plan.rounds; round += 1) {
      log(`${scenario.title}: round ${round} of ${plan.rounds}`)
      for (const target of targets) {
        samples.get(target.name)?.push(await meter.round(target, scenario, round === 1))
      }
    }
    measured.push(figuresOf(scenario, samples, connectionsOf(scenario, plan.connections)))
  }
  const skipped = scenarios.filter((scenario) => !possible.includes(scenario)).map(({ title }) => title)
  return { scenarios: measured, skipped, gatewayCalls: meter.gatewayCalls }
}

/** Portkey does not take every call, and its answer to one shows whether it does. Everything else has to. */
async function takesPart({ name, port, callOf }: Target, scenario: Scenario): Promise<boolean> {
  if (name !== 'portkey') return true
  const plan = { port, call: callOf(scenario), connections: 1, milliseconds: PROBE_LIMIT_MS, calls: 1 }
  const { calls, failures } = await runLoad(plan)
  return calls === 1 && failures === 0
}

class Meter {
  readonly #plan: MeasurePlan
  gatewayCalls = 0

  constructor(plan: MeasurePlan) {
    this.#plan = plan
  }

  async warmUp(target: Target, scenario: Scenario): Promise<void> {
    const connections = connectionsOf(scenario, this.#plan.connections)
    const proxy = target.name === 'direct' || target.name === 'bare'
    const limit = proxy ? PROXY_WARM_UP_LIMIT_MS : WARM_UP_LIMIT_MS
    // A short run has a short warm-up.
    const milliseconds = Math.min(limit, limit * (this.#plan.slot / 1_000))
    await this.#load(target, scenario, { connections, milliseconds, calls: WARM_UP_CALLS })
  }

  /** @param first whether to measure also what no ratio needs: the throughput of the upstream */
  async round(target: Target, scenario: Scenario, first: boolean): Promise<Sample> {
    return {
      busy: first || target.name !== 'direct' ? await this.#busy(target, scenario) : null,
      calm: await this.#calm(target, scenario),
    }
  }

  async #busy(target: Target, scenario: Scenario): Promise<Sample['busy']> {
    const connections = connectionsOf(scenario, this.#plan.connections)
    const before = this.#cpu(target)
    const load = { connections, milliseconds: this.#plan.slot }
    const result = await this.#load(target, scenario, load, scenario.byWrk ? runWrk : runLoad)
    await this.#settle(target)
    const used = this.#cpu(target) - before
    return {
      callsPerSecond: (result.calls / result.milliseconds) * 1_000,
      cpuPerCall: target.pid === null ? null : used / result.calls,
      total: spreadOf(result.totals),
      firstByte: spreadOf(result.firstBytes),
    }
  }

  async #calm(target: Target, scenario: Scenario): Promise<Sample['calm']> {
    const { slot } = this.#plan
    const milliseconds = isLarge(scenario) ? slot : slot / 2
    const { totals, firstBytes } = await this.#load(target, scenario, { connections: 1, milliseconds })
    await this.#settle(target)
    return { totals, firstBytes }
  }

  async #load(
    target: Target,
    scenario: Scenario,
    load: Omit<LoadPlan, 'port' | 'call'>,
    run = runLoad,
  ): Promise<LoadResult> {
    const result = await run({ ...load, port: target.port, call: target.callOf(scenario) })
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
