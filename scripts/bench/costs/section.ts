import { BenchAgents } from '../agents/bench-agents.ts'
import { dollarsOf } from '../list-prices.ts'
import { runLoad } from '../load.ts'
import { BenchFailure } from '../measure.ts'
import type { Call } from '../scenarios.ts'
import type { BenchSystem } from '../system.ts'
import { type CountingSystem, type Operations, startCountingSystem } from './counting-system.ts'

/** The name of this section for `--only`. */
export const COSTS_SECTION = 'costs'

/** The operations of one call of a kind, on average over many. */
export interface CallCost {
  kind: string
  /** Calls at a time. */
  atOnce: number
  operations: Operations
  /** The most that a million calls are to cost; null without an aim. */
  mostDollars: number | null
}

export type CostFigures = CallCost[]

interface Kind {
  kind: string
  call: Call
  calls: number
  atOnce: number
  mostDollars?: number
}

const CALLS = 320
const AT_ONCE = 32
const FEW_AT_ONCE = 8
const LIMIT_MS = 180_000
const RUNS = 10
const STEPS = 11
/** Twenty events a second for a minute. */
const MINUTE_SCRIPT = 'script:long-stream tokens=1200 delay=50'
const DOLLARS_OF_CHAT = 3
const DOLLARS_OF_RESPONSE = 40

/** Counts the operations of a call of each kind. It takes about ten minutes. @throws BenchFailure when a call fails. */
export async function countCosts(system: BenchSystem, log: (line: string) => void): Promise<CostFigures> {
  const counting = await startCountingSystem(system)
  try {
    const costs: CallCost[] = []
    for (const kind of kindsOf(system)) {
      log(`costs: ${kind.kind}, ${kind.atOnce} at a time`)
      costs.push(await costOfKind(counting, kind))
    }
    log('costs: steps of runs')
    costs.push(await BenchAgents.open(system, (agents) => costOfStep(agents, counting)))
    return costs
  } finally {
    await counting.stop()
  }
}

function kindsOf({ scenarios }: BenchSystem): Kind[] {
  const callOf = (name: string): Call => {
    const scenario = scenarios.find((each) => each.name === name)
    if (!scenario) throw new Error(`there is no scenario ${name}`)
    return scenario.call
  }
  const load = { calls: CALLS, atOnce: AT_ONCE }
  const chat = { call: callOf('chat'), mostDollars: DOLLARS_OF_CHAT }
  const minuteOf = (store: boolean) =>
    changed(callOf('responses-paced'), { input: MINUTE_SCRIPT, max_output_tokens: 2_000, store })
  const unstored = changed(callOf('responses-whole'), { store: false })
  return [
    { kind: 'chat, whole', ...chat, calls: CALLS / 4, atOnce: 1 },
    { kind: 'chat, whole', ...chat, ...load },
    { kind: 'chat, streamed', call: callOf('chat-paced'), ...load },
    { kind: 'messages, whole', call: callOf('messages'), ...load },
    { kind: 'response, whole', call: changed(callOf('responses-whole'), {}), calls: CALLS / 4, atOnce: 1 },
    { kind: 'response, whole', call: changed(callOf('responses-whole'), {}), ...load },
    { kind: 'response, whole, not stored', call: unstored, ...load },
    ...[true, false].flatMap((store): Kind[] => {
      const kind = {
        kind: `response, streamed for 60 s${store ? '' : ', not stored'}`,
        call: minuteOf(store),
      }
      return [
        { ...kind, calls: 1, atOnce: 1 },
        { ...kind, calls: FEW_AT_ONCE, atOnce: FEW_AT_ONCE },
        { ...kind, calls: AT_ONCE, atOnce: AT_ONCE, mostDollars: DOLLARS_OF_RESPONSE },
      ]
    }),
  ]
}

/** The call of a response that is stored, as responses are by default, with some other members. */
const changed = (call: Call, members: Record<string, unknown>): Call => ({
  ...call,
  body: JSON.stringify({ ...JSON.parse(call.body ?? '{}'), store: true, ...members }),
})

async function costOfKind(
  counting: CountingSystem,
  { kind, call, calls, atOnce, mostDollars }: Kind,
): Promise<CallCost> {
  const load = async (count: number) => {
    const plan = {
      port: counting.port,
      call,
      connections: Math.min(atOnce, count),
      calls: count,
      milliseconds: LIMIT_MS,
    }
    const result = await runLoad(plan)
    if (result.failures > 0 || result.calls !== count) {
      throw new BenchFailure(`costs, ${kind}: ${result.firstFailure ?? 'the calls took too long'}`)
    }
  }
  // A first call warms the isolate: what it reads once is not a cost of each call.
  if (calls > AT_ONCE) await load(AT_ONCE)
  const operations = await countedFor(counting, calls, () => load(calls))
  return { kind, atOnce, operations, mostDollars: mostDollars ?? null }
}

/** A further step of a run: what a run of many steps takes more than one of a single step, one run at a time. */
async function costOfStep(agents: BenchAgents, counting: CountingSystem): Promise<CallCost> {
  const instructions = await agents.answer('costs')
  const runsOf = async (name: string, steps: number) => {
    const agent = await agents.createAgent(name, instructions, steps)
    return countedFor(counting, RUNS, async () => {
      for (let index = 0; index < RUNS; index += 1) {
        await agents.trigger(agent)
        await agents.untilEnded(agent, LIMIT_MS)
      }
    })
  }
  // A first run warms the isolate: what it reads once is not a cost of each step.
  await runsOf('costs, first runs', 1)
  const [short, long] = [await runsOf('costs, short runs', 1), await runsOf('costs, long runs', STEPS)]
  const operations = difference(short, long, STEPS - 1)
  return { kind: 'step of a run', atOnce: 1, operations, mostDollars: null }
}

async function countedFor(
  counting: CountingSystem,
  calls: number,
  work: () => Promise<void>,
): Promise<Operations> {
  await counting.settle()
  const before = await counting.counts()
  await work()
  await counting.settle()
  return difference(before, await counting.counts(), calls)
}

/** The sum of all additions, divided by a number. */
function difference(before: Operations, after: Operations, by: number): Operations {
  const { rowsByTable: rowsBefore, ...countsBefore } = before
  const { rowsByTable: rowsAfter, ...countsAfter } = after
  return {
    ...(added(countsBefore, countsAfter, by) as Omit<Operations, 'rowsByTable'>),
    rowsByTable: added(rowsBefore, rowsAfter, by),
  }
}

function added(before: Record<string, number>, after: Record<string, number>, by: number) {
  const names = Object.entries(after).map(([name, count]) => [name, (count - (before[name] ?? 0)) / by])
  return Object.fromEntries(names) as Record<string, number>
}

/** The parts of what a call costs at list prices, in dollars. Postgres and the model are no part of it. */
export function dollarsOfCall(operations: Operations) {
  const { workerRequests, workerCpu, objectRequests, objectAlarms, objectSeconds } = operations
  const worker = dollarsOf('workerRequests', workerRequests) + dollarsOf('workerCpu', workerCpu)
  const requests = dollarsOf('objectRequests', objectRequests + objectAlarms)
  const duration = dollarsOf('objectSeconds', objectSeconds)
  const rows = dollarsOf('objectRowsWritten', operations.objectRowsWritten)
  const queue =
    dollarsOf('queueMessages', operations.queueMessages) +
    dollarsOf('redisRequests', operations.redisRequests)
  return { worker, requests, duration, rows, queue, all: worker + requests + duration + rows + queue }
}
