import { BenchFailure } from '../measure.ts'
import { cpuMicroseconds, untilIdle } from '../process-usage.ts'
import { quantile } from '../statistics.ts'
import type { BenchSystem } from '../system.ts'
import { type BenchServer, prepareServer } from './bench-server.ts'

/** The name of this section for `--only`. */
export const MCP_SECTION = 'mcp'

/** Requests of one kind, one at a time. */
export interface McpRow {
  name: string
  /** Milliseconds. */
  p50: number
  p99: number
  /** CPU of the gateway for one request, in microseconds; null for requests that do not meet it. */
  cpu: number | null
  bytes: number
  requests: number
}

export interface McpFigures {
  /** Tools of the integration. */
  tools: number
  list: McpRow[]
  call: McpRow[]
}

const TOOLS = 2_000
const LISTS = 60
const CALLS = 400
const WARM_UPS = 20
const QUIET_MS = 1_300
const IDLE_LIMIT_MS = 10_000

/** Measures lists and calls of the MCP gateway, each beside the same request to its upstream. It takes about half a minute. */
export async function measureMcp(system: BenchSystem, log: (line: string) => void): Promise<McpFigures> {
  const server = await prepareServer(system, TOOLS)
  log('mcp: lists')
  const list = [
    await rowOf(system, 'upstream itself, whole list', false, LISTS, () => server.direct('tools/list')),
    await rowOf(system, 'gateway, first page of 200', true, LISTS, () => server.gateway('tools/list')),
    await rowOf(system, 'gateway, all pages', true, LISTS / 6, () => allPages(server)),
  ]
  log('mcp: calls')
  const input = { text: 'hello' }
  const call = [
    await rowOf(system, 'upstream itself', false, CALLS, () =>
      server.direct('tools/call', { name: 'generated_7', arguments: input }),
    ),
    await rowOf(system, 'gateway', true, CALLS, () =>
      server.gateway('tools/call', { name: server.toolName('generated_7'), arguments: input }),
    ),
    await rowOf(system, 'gateway, a tool of the platform', true, CALLS, () =>
      server.gateway('tools/call', { name: 'platform_whoami', arguments: {} }),
    ),
  ]
  return { tools: TOOLS, list, call }
}

/** @returns bytes of all pages. @throws BenchFailure unless they have every tool. */
async function allPages(server: BenchServer): Promise<string> {
  let text = ''
  let tools = 0
  let cursor: string | undefined
  do {
    const page = await server.gateway('tools/list', cursor === undefined ? {} : { cursor })
    const { result } = JSON.parse(page) as { result: { tools: unknown[]; nextCursor?: string } }
    text += page
    tools += result.tools.length
    cursor = result.nextCursor
  } while (cursor !== undefined)
  if (tools < TOOLS) throw new BenchFailure(`the list has ${tools} tools`)
  return text
}

async function rowOf(
  { gateway }: BenchSystem,
  name: string,
  isGateway: boolean,
  requests: number,
  request: () => Promise<string>,
): Promise<McpRow> {
  for (let index = 0; index < WARM_UPS; index += 1) await request()
  await untilIdle(gateway.pid, QUIET_MS, IDLE_LIMIT_MS)
  const before = cpuMicroseconds(gateway.pid)
  const times: number[] = []
  let bytes = 0
  for (let index = 0; index < requests; index += 1) {
    const begin = performance.now()
    bytes = (await request()).length
    times.push(performance.now() - begin)
  }
  await untilIdle(gateway.pid, QUIET_MS, IDLE_LIMIT_MS)
  const cpu = isGateway ? (cpuMicroseconds(gateway.pid) - before) / requests : null
  return { name, p50: quantile(times, 0.5), p99: quantile(times, 0.99), cpu, bytes, requests }
}
