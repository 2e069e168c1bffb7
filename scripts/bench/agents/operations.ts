import type { BenchSystem } from '../system.ts'
import { type CountingSystem, type Counts, type Operations, startCountingSystem } from './counting-system.ts'
import { AgentWorld } from './world.ts'

export interface OperationFigures {
  /** A run of one turn. */
  first: Operations
  /** Each further turn of a run. */
  further: Operations
  /** A turn as a call of `POST /v1/responses`. */
  direct: Operations
  /** Requests to objects for a further turn, by binding and method. */
  objects: Record<string, number>
  runs: number
}

const RUNS = 10
const TURNS = 11
const WARM_UPS = 2
const LIMIT_MS = 120_000

/** Counts operations, one run at a time. @throws BenchFailure when a run or a response fails. */
export async function countOperations(system: BenchSystem): Promise<OperationFigures> {
  const counting = await startCountingSystem(system)
  try {
    return await AgentWorld.open(system, counting.url, (world) => countKinds(world, counting))
  } finally {
    await counting.stop()
  }
}

async function countKinds(world: AgentWorld, counting: CountingSystem): Promise<OperationFigures> {
  const instructions = await world.answer('agents-counted', 0)
  const runOf = async (name: string, turns: number) => {
    const agent = await world.createAgent(`counted, ${name}`, instructions, turns)
    return countsOf(counting, async () => {
      await world.trigger(agent)
      await world.untilEnded(agent, LIMIT_MS)
    })
  }
  const direct = await countsOf(counting, () => world.respond(instructions, 1))
  const first = await runOf('short', 1)
  const all = await runOf('long', TURNS)
  const further = difference(first, all, TURNS - 1)
  return {
    first: first.operations,
    further: further.operations,
    direct: direct.operations,
    objects: further.objects,
    runs: RUNS,
  }
}

/** What is counted for one call of `work`, on average. */
async function countsOf(counting: CountingSystem, work: () => Promise<void>): Promise<Counts> {
  for (let index = 0; index < WARM_UPS; index += 1) await work()
  await counting.settle()
  const before = await counting.counts()
  for (let index = 0; index < RUNS; index += 1) await work()
  await counting.settle()
  return difference(before, await counting.counts(), RUNS)
}

/** What has been added, divided by a number. */
function difference(before: Counts, after: Counts, by: number): Counts {
  const between = <Values extends object>(one: Values, other: Values): Values => {
    const names = Object.keys(other) as Array<keyof Values>
    const figure = (name: keyof Values) => (Number(other[name]) - Number(one[name] ?? 0)) / by
    return Object.fromEntries(names.map((name) => [name, figure(name)])) as Values
  }
  return {
    operations: between(before.operations, after.operations),
    objects: between(before.objects, after.objects),
  }
}
