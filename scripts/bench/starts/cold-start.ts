import type { Bundle } from '../../build.ts'
import { startWorkerd, type WorkerdOptions } from '../../node/workerd.ts'
import { BenchFailure } from '../measure.ts'
import { cpuMicroseconds } from '../process-usage.ts'
import { median } from '../statistics.ts'
import type { BenchSystem } from '../system.ts'
import { execute } from './workspace-call.ts'

/** The name of this section for `--only`. */
export const STARTS_SECTION = 'starts'

/** Time and CPU from the start of the runtime's process to the first answer of a script. */
export interface ColdStart {
  /** Median, in milliseconds. */
  milliseconds: number
  /** User and system time of the process until then, in milliseconds; the mean, since the system counts in steps of 10 ms. */
  cpu: number
}

export type ColdStarts = Record<'bare' | 'gateway' | 'tools' | 'command', ColdStart>

export interface StartFigures {
  scripts: Record<'gateway' | 'tools', Pick<Bundle, 'size' | 'compressedSize'>>
  coldStarts: ColdStarts
  /** Measured starts of each script. */
  starts: number
}

type FirstCall = (url: string) => Promise<void>

const STARTS = 7

/**
 * Measures the bytes and the cold starts of each script. `command` is the script of tools up to the result of a first command.
 * @throws BenchFailure when a first call fails.
 */
export async function measureStarts(
  { runtimes, scripts }: Pick<BenchSystem, 'runtimes' | 'scripts'>,
  log: (line: string) => void,
): Promise<StartFigures> {
  log('starts of the scripts')
  const health: FirstCall = (url) => get(`${url}/health`)
  const kinds: Record<keyof ColdStarts, { runtime: WorkerdOptions; first: FirstCall }> = {
    bare: { runtime: runtimes.bare, first: (url) => get(`${url}/v1/models`) },
    gateway: { runtime: runtimes.gateway, first: health },
    tools: { runtime: runtimes.tools, first: health },
    command: { runtime: runtimes.tools, first: (url) => execute(url, 'cold', 'echo hello') },
  }
  const results = new Map<string, Array<{ milliseconds: number; cpu: number }>>()
  for (let round = 0; round <= STARTS; round += 1) {
    for (const [name, { runtime, first }] of Object.entries(kinds)) {
      const result = await coldStart(runtime, first)
      // The first round reads the files from the disk.
      if (round > 0) results.set(name, [...(results.get(name) ?? []), result])
    }
  }
  const figures = Object.keys(kinds).map((name) => [name, coldStartOf(results.get(name) ?? [])])
  return { scripts, coldStarts: Object.fromEntries(figures) as ColdStarts, starts: STARTS }
}

const coldStartOf = (results: readonly ColdStart[]): ColdStart => ({
  milliseconds: median(results.map(({ milliseconds }) => milliseconds)),
  cpu: results.reduce((sum, { cpu }) => sum + cpu, 0) / results.length,
})

async function coldStart(runtime: WorkerdOptions, first: FirstCall): Promise<ColdStart> {
  // The first start writes configuration and storage; the second one is measured, on files that are there.
  const worker = await startWorkerd(runtime)
  try {
    await worker.kill()
    const begin = performance.now()
    await worker.restart()
    await first(worker.url)
    const milliseconds = performance.now() - begin
    return { milliseconds, cpu: cpuMicroseconds(worker.pid) / 1_000 }
  } finally {
    await worker.stop()
  }
}

async function get(url: string): Promise<void> {
  const response = await fetch(url)
  await response.arrayBuffer()
  if (response.status >= 500) throw new BenchFailure(`${url}: status ${response.status}`)
}
