import { createChatFrames, roleDelta, streamEnd } from '../../local/model-upstream/chat-frames.ts'
import { BenchFailure } from '../measure.ts'
import { databaseFiles, readDatabase } from '../object-storage.ts'
import { cpuMicroseconds, untilIdle } from '../process-usage.ts'
import { type Counter, startCounter } from '../request-counter.ts'
import { Calls, RESPONSE_ENDING } from '../responses/calls.ts'
import { callStream } from '../responses/stream-call.ts'
import { upstreamRequests } from '../round-trip-count.ts'
import { median } from '../statistics.ts'
import type { BenchSystem } from '../system.ts'

/** What one response costs, on average over its kind. */
export interface TurnCost {
  /** Of the processes of the gateway and of the tools, in microseconds. */
  gatewayCpu: number
  toolsCpu: number
  /** Milliseconds from the request to the last event. */
  p50: number
  /** Requests of the gateway. */
  upstream: number
  tools: number
  postgres: number
  redis: number
  /** Commits of the ledger's objects, each of which is one row. */
  ledgerCommits: number
  /** Rows that the object of the response has at its end. */
  objectRows: number
}

export interface TurnCosts {
  /** One turn of the model. */
  plain: TurnCost
  /** Two turns, with a call of the shell between them. */
  shell: TurnCost
  calls: number
}

/** Longer than the ledger puts its writing off. */
const QUIET_MS = 1_300
const IDLE_LIMIT_MS = 10_000
const WARM_UPS = 5

const USAGE = { prompt: 100, cached: 0, completion: 20, reasoning: 0 }
const SCRIPTS = {
  plain: [answer('Done.')],
  shell: [shellCall(['echo hello > out.txt; wc -c out.txt']), answer('Done.')],
}
type Kind = keyof typeof SCRIPTS

/**
 * Measures stored, streamed responses, one at a time, the two kinds in turn. The gateway is started again with counters in
 * front of Redis and Postgres.
 * @throws BenchFailure when a response does not complete, or its model did not call the shell.
 */
export async function measureTurns(system: BenchSystem, rounds: number, calls: number): Promise<TurnCosts> {
  const redis = await startCounter(system.redis)
  const postgres = await startCounter(system.postgres)
  const measured: Record<Kind, TurnCost[]> = { plain: [], shell: [] }
  try {
    await system.gateway.restart({
      ...system.variables,
      UPSTASH_REDIS_REST_URL: redis.url,
      DATABASE_FETCH_ENDPOINT: `${postgres.url}/sql`,
    })
    for (let round = 0; round < rounds; round += 1) {
      for (const kind of ['plain', 'shell'] as const) {
        for (let index = 0; index < WARM_UPS; index += 1) await respond(system, kind)
        measured[kind].push(await costOf(system, kind, calls, { redis, postgres }))
      }
    }
  } finally {
    await system.gateway.restart(system.variables)
    await redis.close()
    await postgres.close()
  }
  return { plain: medians(measured.plain), shell: medians(measured.shell), calls: calls * rounds }
}

async function costOf(
  system: BenchSystem,
  kind: Kind,
  calls: number,
  { redis, postgres }: Record<'redis' | 'postgres', Counter>,
): Promise<TurnCost> {
  const { gateway, tools, toolsRequests, upstream } = system
  await untilIdle(gateway.pid, QUIET_MS, IDLE_LIMIT_MS)
  const filesBefore = new Set(databaseFiles(gateway.storageDirectory))
  const commitsBefore = ledgerCommits(system)
  const upstreamBefore = await upstreamRequests(upstream)
  const [gatewayBefore, toolsBefore] = [cpuMicroseconds(gateway.pid), cpuMicroseconds(tools.pid)]
  for (const counter of [redis, postgres, toolsRequests]) counter.reset()
  const times: number[] = []
  for (let index = 0; index < calls; index += 1) times.push(await respond(system, kind))
  await untilIdle(gateway.pid, QUIET_MS, IDLE_LIMIT_MS)
  const rows = databaseFiles(gateway.storageDirectory)
    .filter((file) => !filesBefore.has(file))
    .flatMap(objectRows)
  return {
    gatewayCpu: (cpuMicroseconds(gateway.pid) - gatewayBefore) / calls,
    toolsCpu: (cpuMicroseconds(tools.pid) - toolsBefore) / calls,
    p50: median(times),
    upstream: ((await upstreamRequests(upstream)) - upstreamBefore) / calls,
    tools: toolsRequests.count() / calls,
    postgres: postgres.count() / calls,
    redis: redis.count() / calls,
    ledgerCommits: (ledgerCommits(system) - commitsBefore) / calls,
    objectRows: rows.reduce((sum, each) => sum + each, 0) / calls,
  }
}

/** One response. @returns milliseconds to its last event. */
async function respond(system: BenchSystem, kind: Kind): Promise<number> {
  const name = `bench-turns-${kind}`
  // The answers of a script are given in turn: each response begins with the first one.
  const response = await fetch(`${system.upstream}/control/scripts/${name}`, {
    method: 'PUT',
    body: JSON.stringify({ responses: SCRIPTS[kind] }),
  })
  if (!response.ok) throw new BenchFailure(`registering ${name}: status ${response.status}`)
  const marks = kind === 'shell' ? [/"exit_code":0/] : []
  const { total } = await callStream(new Calls(system).response(name), RESPONSE_ENDING, marks)
  return total
}

/** Commits that the ledgers of the runtime have made since they began. */
const ledgerCommits = ({ gateway }: BenchSystem): number =>
  databaseFiles(gateway.storageDirectory)
    .flatMap((file) =>
      readDatabase(file, (database) =>
        Number(database.prepare('SELECT coalesce(max(number), 0) AS last FROM commits').get()?.last),
      ),
    )
    .reduce((sum, each) => sum + each, 0)

/** The rows of all tables of a response's object. */
const objectRows = (file: string): number[] =>
  readDatabase(file, (database) => {
    const count = (table: string) =>
      Number(database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows)
    return count('event_segments') + count('state') + count('input_parts')
  })

const medians = (costs: readonly TurnCost[]): TurnCost => {
  const names = Object.keys(costs[0] ?? {}) as Array<keyof TurnCost>
  return Object.fromEntries(
    names.map((name) => [name, median(costs.map((cost) => cost[name]))]),
  ) as unknown as TurnCost
}

function answer(text: string) {
  const frames = createChatFrames('scripted-chat', true)
  const sse = [frames.choice(0, roleDelta), frames.text(0, text), frames.finish(0, 'stop')]
  return { steps: [{ sse: [...sse, frames.usage(USAGE), streamEnd] }] }
}

function shellCall(commands: string[]) {
  const frames = createChatFrames('scripted-chat', true)
  const call = {
    index: 0,
    id: 'call_bench',
    type: 'function',
    function: {
      name: 'shell',
      arguments: JSON.stringify({ commands, timeout_ms: null, max_output_length: null }),
    },
  }
  const sse = [
    frames.choice(0, roleDelta),
    frames.choice(0, JSON.stringify({ tool_calls: [call] })),
    frames.finish(0, 'tool_calls'),
  ]
  return { steps: [{ sse: [...sse, frames.usage(USAGE), streamEnd] }] }
}
