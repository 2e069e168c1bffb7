import { cpuMicroseconds, untilIdle } from '../process-usage.ts'
import { median } from '../statistics.ts'
import type { BenchSystem } from '../system.ts'
import { BenchAgents } from './bench-agents.ts'

/** Figures of turns that were made in one way. */
export interface TurnFigures {
  /** Milliseconds of one turn among those of a sequence, one sequence at a time; median over sequences. */
  alone: number
  /** Turns of several sequences at a time, in a second. */
  turnsPerSecond: number
  /** Processor time for one turn, with several sequences at a time, in milliseconds. */
  gatewayCpu: number
  postgresCpu: number
}

/** The name of this section for `--only`. */
export const AGENTS_SECTION = 'agents'

export interface DispatchFigures {
  /** Turns as calls of `POST /v1/responses` by a client. */
  direct: TurnFigures
  /** Turns as steps of runs. */
  runs: TurnFigures
  turnsOfRun: number
  sequences: number
  atOnce: number
}

const TURNS = 10
const SEQUENCES = 5
const AT_ONCE = 16
const LOADS = 2
const WARM_UPS = 2
const QUIET_MS = 1_300
const IDLE_LIMIT_MS = 15_000
const LIMIT_MS = 300_000

/**
 * Measures turns as steps of runs and as responses, in turn. The model answers at once.
 * @param rounds of both. @throws BenchFailure when a run or a response fails.
 */
export function measureDispatch(
  system: BenchSystem,
  rounds: number,
  log: (line: string) => void,
): Promise<DispatchFigures> {
  log('agents: turns')
  return BenchAgents.open(system, (agents) => measureWays(system, agents, rounds))
}

async function measureWays(
  system: BenchSystem,
  agents: BenchAgents,
  rounds: number,
): Promise<DispatchFigures> {
  const instructions = await agents.answer('agents-dispatch')
  const direct = () => agents.respond(instructions, TURNS)
  const alone: Record<'direct' | 'runs', number[]> = { direct: [], runs: [] }
  const loads: Record<'direct' | 'runs', Load[]> = { direct: [], runs: [] }
  for (let round = 0; round < rounds; round += 1) {
    const agent = await agents.createAgent(`dispatch ${round}`, instructions, TURNS)
    const run = () => timeOfRun(agents, agent)
    for (let index = 0; index < WARM_UPS + SEQUENCES; index += 1) {
      const times = { direct: await timeOf(direct), runs: await run() }
      if (index < WARM_UPS) continue
      alone.direct.push(times.direct / TURNS)
      alone.runs.push(times.runs / TURNS)
    }
    loads.direct.push(await loadOf(system, () => directLoad(direct)))
    const loaded = await agents.createAgent(`load ${round}`, instructions, TURNS)
    loads.runs.push(await loadOf(system, () => runLoad(agents, loaded)))
  }
  const figures = (kind: 'direct' | 'runs'): TurnFigures => ({
    alone: median(alone[kind]),
    turnsPerSecond: median(loads[kind].map(({ turnsPerSecond }) => turnsPerSecond)),
    gatewayCpu: median(loads[kind].map(({ gatewayCpu }) => gatewayCpu)),
    postgresCpu: median(loads[kind].map(({ postgresCpu }) => postgresCpu)),
  })
  const counts = { turnsOfRun: TURNS, sequences: SEQUENCES * rounds, atOnce: AT_ONCE }
  return { direct: figures('direct'), runs: figures('runs'), ...counts }
}

async function timeOf(work: () => Promise<void>): Promise<number> {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

/** Milliseconds of a run from its creation to its end, as its row has them: polls are not part of it. */
async function timeOfRun(agents: BenchAgents, agent: string): Promise<number> {
  await agents.trigger(agent)
  await agents.untilEnded(agent, LIMIT_MS)
  const latest = (await agents.endedRuns(agent)).at(-1)
  return (latest?.endedAt ?? Number.NaN) - (latest?.createdAt ?? Number.NaN)
}

type Load = Omit<TurnFigures, 'alone'>

/** @param work returns the milliseconds that its sequences took. */
async function loadOf({ gateway, postgresPid }: BenchSystem, work: () => Promise<number>): Promise<Load> {
  await untilIdle(gateway.pid, QUIET_MS, IDLE_LIMIT_MS)
  const before = [cpuMicroseconds(gateway.pid), cpuMicroseconds(postgresPid)] as const
  const milliseconds = await work()
  await untilIdle(gateway.pid, QUIET_MS, IDLE_LIMIT_MS)
  const turns = AT_ONCE * LOADS * TURNS
  return {
    turnsPerSecond: (turns * 1_000) / milliseconds,
    gatewayCpu: (cpuMicroseconds(gateway.pid) - before[0]) / 1_000 / turns,
    postgresCpu: (cpuMicroseconds(postgresPid) - before[1]) / 1_000 / turns,
  }
}

const directLoad = (direct: () => Promise<void>): Promise<number> =>
  timeOf(async () => {
    const worker = async () => {
      for (let index = 0; index < LOADS; index += 1) await direct()
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
  })

async function runLoad(agents: BenchAgents, agent: string): Promise<number> {
  await Promise.all(Array.from({ length: AT_ONCE * LOADS }, () => agents.trigger(agent)))
  await agents.untilEnded(agent, LIMIT_MS)
  const runs = await agents.endedRuns(agent)
  const first = Math.min(...runs.map(({ createdAt }) => createdAt))
  return Math.max(...runs.map(({ endedAt }) => endedAt)) - first
}
