import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runLoad } from './load.ts'
import { BenchFailure } from './measure.ts'
import { untilIdle } from './process-usage.ts'
import { type CpuProfile, recordProfile, summarize } from './profile.ts'
import { renderProfile } from './report.ts'
import { connectionsOf, type Scenario } from './scenarios.ts'
import type { BenchSystem } from './system.ts'

export interface ProfilePlan {
  inspectorPort: number
  milliseconds: number
  connections: number
  /** Folder for the profiles. */
  folder: string
}

type Log = (line: string) => void

/** Records and prints the profile of one scenario. @throws BenchFailure when a call fails */
export async function profileScenario(
  { gateway, bundle }: BenchSystem,
  scenario: Scenario,
  plan: ProfilePlan,
  log: Log,
): Promise<void> {
  log(`profiling ${scenario.title}`)
  const { port, pid } = gateway
  const { call } = scenario
  const connections = connectionsOf(scenario, plan.connections)
  await runLoad({ port, call, connections, milliseconds: 4_000, calls: 1_500 })
  let calls = 0
  const recorded = await recordProfile(plan.inspectorPort, async () => {
    const result = await runLoad({ port, call, connections, milliseconds: plan.milliseconds })
    if (result.failures > 0) throw new BenchFailure(`${scenario.title}: ${result.firstFailure}`)
    calls = result.calls
    await untilIdle(pid, 1_300, 10_000)
  })
  writeProfile(scenario, recorded, bundle, calls, plan, log)
}

function writeProfile(
  { name, title }: { name: string; title: string },
  recorded: CpuProfile,
  bundle: string,
  calls: number,
  { folder }: ProfilePlan,
  log: Log,
): void {
  const file = join(folder, `bench-${name}.cpuprofile`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, JSON.stringify(recorded))
  console.log(`${renderProfile(title, summarize(recorded, join(bundle, 'gateway.js')), calls)}\n`)
  log(`wrote .headgate/bench-${name}.cpuprofile`)
}
