import { cpuMicroseconds, untilIdle } from '../process-usage.ts'
import { quantile } from '../statistics.ts'
import type { BenchSystem } from '../system.ts'
import { callWorkspace, execute } from './workspace-call.ts'

/** One kind of call of the script of tools, one at a time. */
export interface CommandFigures {
  name: string
  /** Milliseconds. */
  p50: number
  p99: number
  /** Of the process of the tools for one call, in microseconds. */
  cpu: number
  calls: number
}

const QUIET_MS = 300
const IDLE_LIMIT_MS = 5_000
const WARM_UPS = 20

/** The calls, the first of which does nothing: the others are compared with it. */
export async function measureCommands(
  { tools }: Pick<BenchSystem, 'tools'>,
  calls: number,
): Promise<CommandFigures[]> {
  const workspace = 'bench'
  const lines = Array.from({ length: 1_000 }, (_, index) => `line ${index}`).join('\n')
  await callWorkspace(tools.url, workspace, 'write', { path: 'lines.txt', content: lines })
  const command = (text: string) => () => execute(tools.url, workspace, [text])
  const operation = (name: 'read' | 'write', members: object) => () =>
    callWorkspace(tools.url, workspace, name, { path: 'lines.txt', ...members })
  const kinds: Array<[name: string, call: () => Promise<unknown>]> = [
    ['a request that does nothing', () => fetch(`${tools.url}/health`).then((answer) => answer.text())],
    ['`true`', command('true')],
    ['`echo x > out.txt`', command('echo x > out.txt')],
    ['`sort -r lines.txt \\| head -1`, of 1,000 lines', command('sort -r lines.txt | head -1')],
    ['a loop of 1,000 steps', command('for i in $(seq 1000); do x=$i; done')],
    ['read_file, 500 of 1,000 lines', operation('read', { offset: 1, limit: 500 })],
    ['write_file, 10 KB', operation('write', { content: lines })],
  ]
  const figures: CommandFigures[] = []
  for (const [name, call] of kinds) figures.push({ name, ...(await timesOf(tools.pid, call, calls)) })
  return figures
}

async function timesOf(pid: number, call: () => Promise<unknown>, calls: number) {
  for (let index = 0; index < WARM_UPS; index += 1) await call()
  await untilIdle(pid, QUIET_MS, IDLE_LIMIT_MS)
  const before = cpuMicroseconds(pid)
  const times: number[] = []
  for (let index = 0; index < calls; index += 1) {
    const begin = performance.now()
    await call()
    times.push(performance.now() - begin)
  }
  await untilIdle(pid, QUIET_MS, IDLE_LIMIT_MS)
  const cpu = (cpuMicroseconds(pid) - before) / calls
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), cpu, calls }
}
