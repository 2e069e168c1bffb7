import { setTimeout } from 'node:timers/promises'
import { BenchFailure } from '../measure.ts'
import { forgetPeak, peakBytes, residentBytes } from '../process-usage.ts'
import { quantile } from '../statistics.ts'
import type { BenchSystem } from '../system.ts'
import { AgentWorld, type EndedRun } from './world.ts'

/** Many runs at once, of one turn each. */
export interface ConcurrentFigures {
  runs: number
  /** Triggers that were refused, such as for a database that took too long, and sent again. */
  repeated: number
  /** Milliseconds that the model takes for a turn. */
  model: number
  /** The most that were in progress together. */
  together: number
  /** Milliseconds from the first creation to the last end. */
  total: number
  /** Milliseconds from its creation to its end, of a run. */
  p50: number
  p99: number
  /** Of the gateway's process, in bytes; the peak is null where the system does not reset it. */
  memory: { before: number; peak: number | null }
}

const RUNS = 500
const MODEL_MS = 2_000
const TRIGGERED_TOGETHER = 16
const TRIES = 5
const LIMIT_MS = 300_000

/** Begins 500 runs as fast as it can. @throws BenchFailure unless all succeed. */
export const measureConcurrentRuns = (system: BenchSystem): Promise<ConcurrentFigures> =>
  AgentWorld.open(system, system.gateway.url, (world) => measureTogether(system, world))

async function measureTogether({ gateway }: BenchSystem, world: AgentWorld): Promise<ConcurrentFigures> {
  const agent = await world.createAgent('concurrent', await world.answer('agents-slow', MODEL_MS), 1)
  const before = residentBytes(gateway.pid)
  const hasPeak = forgetPeak(gateway.pid)
  let begun = 0
  let repeated = 0
  const triggering = async () => {
    while (begun < RUNS) {
      begun += 1
      repeated += await triggerSurely(world, agent, `concurrent-${begun}`)
    }
  }
  await Promise.all(Array.from({ length: TRIGGERED_TOGETHER }, triggering))
  await world.untilEnded(agent, LIMIT_MS)
  const runs = await world.endedRuns(agent)
  if (runs.length !== RUNS) throw new BenchFailure(`of ${RUNS} runs, ${runs.length} are there`)
  const times = runs.map(({ createdAt, endedAt }) => endedAt - createdAt)
  const first = Math.min(...runs.map(({ createdAt }) => createdAt))
  return {
    runs: RUNS,
    repeated,
    model: MODEL_MS,
    together: mostTogether(runs),
    total: Math.max(...runs.map(({ endedAt }) => endedAt)) - first,
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    memory: { before, peak: hasPeak ? peakBytes(gateway.pid) : null },
  }
}

/** Begins a run as a client should: again with its key after a failure. @returns how often again. */
async function triggerSurely(world: AgentWorld, agent: string, key: string): Promise<number> {
  for (let again = 0; ; again += 1) {
    try {
      await world.trigger(agent, key)
      return again
    } catch (error) {
      if (again === TRIES) throw error
      await setTimeout(2 ** again * 200)
    }
  }
}

function mostTogether(runs: readonly EndedRun[]): number {
  const changes = runs.flatMap(({ createdAt, endedAt }) => [
    { at: createdAt, by: 1 },
    { at: endedAt, by: -1 },
  ])
  let together = 0
  let most = 0
  for (const { by } of changes.sort((one, other) => one.at - other.at || one.by - other.by)) {
    together += by
    most = Math.max(most, together)
  }
  return most
}
