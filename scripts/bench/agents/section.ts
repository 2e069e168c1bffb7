import type { BenchSystem } from '../system.ts'
import { type ConcurrentFigures, measureConcurrentRuns } from './concurrent-runs.ts'
import { type DispatchFigures, measureDispatch } from './dispatch.ts'
import { countOperations, type OperationFigures } from './operations.ts'

/** The name of this section for `--only`. */
export const AGENTS_SECTION = 'agents'

export interface AgentsFigures {
  dispatch: DispatchFigures
  concurrent: ConcurrentFigures
  operations: OperationFigures
}

/** Measures runs of agents. It takes about three minutes for three rounds. @throws BenchFailure when a run fails. */
export async function measureAgents(
  system: BenchSystem,
  rounds: number,
  tell: (line: string) => void,
): Promise<AgentsFigures> {
  // First, since watchdogs of other runs would be delivered meanwhile.
  tell('agents: counting operations')
  const operations = await countOperations(system)
  tell('agents: turns')
  const dispatch = await measureDispatch(system, rounds)
  tell('agents: runs at once')
  const concurrent = await measureConcurrentRuns(system)
  return { dispatch, concurrent, operations }
}
