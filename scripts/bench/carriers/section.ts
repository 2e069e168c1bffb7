import { startWorkerd } from '../../local/workerd.ts'
import { runLoad } from '../load.ts'
import { BenchFailure } from '../measure.ts'
import { cpuMicroseconds, untilIdle } from '../process-usage.ts'
import { connectionsOf, type Scenario } from '../scenarios.ts'
import type { BenchSystem } from '../system.ts'

/** The name of this section for `--only`. */
export const CARRIERS_SECTION = 'carriers'

/** One way to carry a stream, and its processor time. */
export interface CarrierRow {
  name: string
  /** Of the Worker for one stream, in microseconds: the least of all rounds, by the title of the scenario. */
  cpu: Record<string, number>
}

/** The ways of `workers/stream-carriers.js`. The first one is what the others are compared with. */
const CARRIERS = [
  'runtime, no copy',
  'runtime, one copy',
  'runtime, two copies',
  'code, one write at the end',
  'code, writes 10 ms apart',
  'code, a write for each chunk',
]
const SCENARIOS = ['chat-paced', 'chat-stream']
const LOAD_MS = 2_500
const QUIET_MS = 200
const IDLE_LIMIT_MS = 5_000

/**
 * Measures what a Worker pays for carrying a stream in each way that the runtime has, with no governance at all. It takes
 * about half a minute for a round.
 */
export async function measureCarriers(
  system: BenchSystem,
  { rounds, connections }: { rounds: number; connections: number },
  tell: (line: string) => void,
): Promise<CarrierRow[]> {
  const worker = await startWorkerd({ ...system.runtimes.bare, entry: 'stream-carriers.js' })
  const rows = CARRIERS.map((name): CarrierRow => ({ name, cpu: {} }))
  const scenarios = system.scenarios.filter(({ name }) => SCENARIOS.includes(name))
  try {
    // The first round is for the engine's compilers.
    for (let round = 0; round <= rounds; round++) {
      tell(`carriers: ${round === 0 ? 'warm-up' : `round ${round} of ${rounds}`}`)
      for (const { cpu, name } of rows) {
        for (const scenario of scenarios) {
          const micros = await cpuOf(worker, scenario, name, connectionsOf(scenario, connections))
          if (round > 0) cpu[scenario.title] = Math.min(micros, cpu[scenario.title] ?? micros)
        }
      }
    }
  } finally {
    await worker.stop()
  }
  return rows
}

/** Processor time of one stream, in microseconds. @throws BenchFailure when a call fails */
async function cpuOf(
  { port, pid }: { port: number; pid: number },
  { title, baseline }: Scenario,
  carrier: string,
  connections: number,
): Promise<number> {
  const call = { ...baseline, headers: { ...baseline.headers, 'x-carrier': carrier } }
  const before = cpuMicroseconds(pid)
  const { calls, failures, firstFailure } = await runLoad({ port, call, connections, milliseconds: LOAD_MS })
  if (failures > 0) throw new BenchFailure(`${title}, ${carrier}: ${firstFailure}`)
  await untilIdle(pid, QUIET_MS, IDLE_LIMIT_MS)
  return (cpuMicroseconds(pid) - before) / calls
}
