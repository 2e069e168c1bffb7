import type { Bundle } from '../../build.ts'
import type { BenchSystem } from '../system.ts'
import { type ColdStarts, measureColdStarts } from './cold-start.ts'
import { type CommandFigures, measureCommands } from './command-latency.ts'
import { measureTurns, type TurnCosts } from './turn-cost.ts'

/** The name of this section for `--only`. */
export const TOOLS_SECTION = 'tools'

/** How many scenarios' worth of time the section takes. */
export const TOOLS_SHARES = 3

export interface ToolsFigures {
  scripts: Record<'gateway' | 'tools', Pick<Bundle, 'size' | 'compressedSize'>>
  coldStarts: ColdStarts
  commands: CommandFigures[]
  turns: TurnCosts
}

const COLD_STARTS = 7
const COMMAND_CALLS = 300
const TURN_CALLS = 40

/** Measures the tools of responses. It takes about a minute for three rounds. @throws BenchFailure when a call fails */
export async function measureTools(
  system: BenchSystem,
  rounds: number,
  tell: (line: string) => void,
): Promise<ToolsFigures> {
  const { gateway, tools } = system.scripts
  tell('tools: cold starts')
  const coldStarts = await measureColdStarts(system, COLD_STARTS)
  tell('tools: commands')
  const commands = await measureCommands(system, COMMAND_CALLS)
  tell('tools: cost of a turn')
  const turns = await measureTurns(system, rounds, TURN_CALLS)
  return { scripts: { gateway, tools }, coldStarts, commands, turns }
}
