import { BenchAgents } from '../agents/bench-agents.ts'
import { dollarsOf } from '../list-prices.ts'
import { runLoad } from '../load.ts'
import { prepareServer } from '../mcp/bench-server.ts'
import { BenchFailure } from '../measure.ts'
import type { Call } from '../scenarios.ts'
import type { BenchSystem } from '../system.ts'
import { type CountingSystem, type Operations, startCountingSystem } from './counting-system.ts'

/** The name of this section for `--only`. */
export const COSTS_SECTION = 'costs'
/** The same without the responses of a minute, which take most of its time: `--prices`. */
export const PRICES_SECTION = 'prices'

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
const TOOLS = 20
const TOOL = 'generated_7'
const STEPS = 11
/** Twenty events a second for a minute. */
const MINUTE_SCRIPT = 'script:long-stream tokens=1200 delay=50'
const DOLLARS_OF_CHAT = 3
const DOLLARS_OF_RESPONSE = 40

/**
 * Counts the operations of a call of each kind. It takes about ten minutes; three without responses of a minute.
 * @throws BenchFailure when a call fails.
 */
export async function countCosts(
  system: BenchSystem,
  withMinutes: boolean,
  log: (line: string) => void,
): Promise<CostFigures> {
  const server = await prepareServer(system, TOOLS, 'bench-costs')
  const tool = server.call('tools/call', { name: server.toolName(TOOL), arguments: { text: 'hello' } })
  const counting = await startCountingSystem(system)
  try {
    const costs: CallCost[] = []
    for (const kind of [
      ...kindsOf(system),
      ...toolKinds(tool),
      ...(withMinutes ? minuteKinds(system) : []),
    ]) {
      log(`costs: ${kind.kind}, ${kind.atOnce} at a time`)
      costs.push(await costOfKind(counting, kind))
    }
    for (const atOnce of [1, FEW_AT_ONCE]) {
      log(`costs: steps of runs, ${atOnce} at a time`)
      costs.push(await BenchAgents.open(system, (agents) => costOfStep(agents, counting, atOnce)))
    }
    return costs
  } finally {
    await counting.stop()
  }
}

const callIn =
  ({ scenarios }: BenchSystem) =>
  (name: string): Call => {
    const scenario = scenarios.find((each) => each.name === name)
    if (!scenario) throw new Error(`there is no scenario ${name}`)
    return scenario.call
  }

function kindsOf(system: BenchSystem): Kind[] {
  const callOf = callIn(system)
  const load = { calls: CALLS, atOnce: AT_ONCE }
  const few = { calls: CALLS / 2, atOnce: FEW_AT_ONCE }
  const chat = { call: callOf('chat'), mostDollars: DOLLARS_OF_CHAT }
  const unstored = changed(callOf('responses-whole'), { store: false })
  return [
    { kind: 'chat, whole', ...chat, calls: CALLS / 4, atOnce: 1 },
    { kind: 'chat, whole', ...chat, ...few },
    { kind: 'chat, whole', ...chat, ...load },
    { kind: 'chat, streamed', call: callOf('chat-paced'), ...load },
    { kind: 'messages, whole', call: callOf('messages'), ...load },
    { kind: 'response, whole', call: changed(callOf('responses-whole'), {}), calls: CALLS / 4, atOnce: 1 },
    { kind: 'response, whole', call: changed(callOf('responses-whole'), {}), ...few },
    { kind: 'response, whole', call: changed(callOf('responses-whole'), {}), ...load },
    { kind: 'response, whole, not stored', call: unstored, ...load },
  ]
}

/** Calls of a tool through the MCP endpoint. */
const toolKinds = (call: Call): Kind[] => [
  { kind: 'tool call', call, calls: CALLS / 4, atOnce: 1 },
  { kind: 'tool call', call, calls: CALLS / 2, atOnce: FEW_AT_ONCE },
]

function minuteKinds(system: BenchSystem): Kind[] {
  const minuteOf = (store: boolean) =>
    changed(callIn(system)('responses-paced'), { input: MINUTE_SCRIPT, max_output_tokens: 2_000, store })
  return [true, false].flatMap((store): Kind[] => {
    const kind = { kind: `response, streamed for 60 s${store ? '' : ', not stored'}`, call: minuteOf(store) }
    return [
      { ...kind, calls: 1, atOnce: 1 },
      { ...kind, calls: FEW_AT_ONCE, atOnce: FEW_AT_ONCE },
      { ...kind, calls: AT_ONCE, atOnce: AT_ONCE, mostDollars: DOLLARS_OF_RESPONSE },
    ]
  })
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

/** A further step of a run: what a run of many steps takes more than one of a single step. */
async function costOfStep(agents: BenchAgents, counting: CountingSystem, atOnce: number): Promise<CallCost> {
  const instructions = await agents.answer('costs')
  const runsOf = async (name: string, steps: number) => {
    const agent = await agents.createAgent(`${name}, ${atOnce} at a time`, instructions, steps)
    const rounds = Math.ceil(RUNS / atOnce)
    return countedFor(counting, rounds * atOnce, async () => {
      for (let round = 0; round < rounds; round += 1) {
        await Promise.all(Array.from({ length: atOnce }, () => agents.trigger(agent)))
        await agents.untilEnded(agent, LIMIT_MS)
      }
    })
  }
  // A first run warms the isolate: what it reads once is not a cost of each step.
  await runsOf('costs, first runs', 1)
  const [short, long] = [await runsOf('costs, short runs', 1), await runsOf('costs, long runs', STEPS)]
  const operations = difference(short, long, STEPS - 1)
  return { kind: 'step of a run', atOnce, operations, mostDollars: null }
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

/** The parts of what a call costs at list prices, in dollars. Computing and storage of Postgres and the model are no part of it. */
export function dollarsOfCall(operations: Operations) {
  const { workerRequests, workerCpu, objectRequests, objectAlarms, objectSeconds } = operations
  const worker = dollarsOf('workerRequests', workerRequests) + dollarsOf('workerCpu', workerCpu)
  const requests = dollarsOf('objectRequests', objectRequests + objectAlarms)
  const duration = dollarsOf('objectSeconds', objectSeconds)
  const rows =
    dollarsOf('objectRowsWritten', operations.objectRowsWritten) +
    dollarsOf('objectRowsRead', operations.objectRowsRead)
  const bucket =
    dollarsOf('bucketWrites', operations.bucketWrites) + dollarsOf('bucketReads', operations.bucketReads)
  const postgres = dollarsOf('postgresReceived', operations.postgresReceived)
  const queue =
    dollarsOf('queueMessages', operations.queueMessages) +
    dollarsOf('redisCommands', operations.redisCommands)
  const parts = { worker, requests, duration, rows, bucket, queue, postgres }
  return { ...parts, all: Object.values(parts).reduce((sum, part) => sum + part, 0) }
}
