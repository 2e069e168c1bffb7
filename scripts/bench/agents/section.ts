import { errorText } from '../../../src/lib/log.ts'
import type { BenchSystem } from '../system.ts'
import { type ConcurrentFigures, measureConcurrentRuns } from './concurrent-runs.ts'
import { type DispatchFigures, measureDispatch } from './dispatch.ts'
import { countOperations, type OperationFigures } from './operations.ts'

/** The name of this section for `--only`. */
export const AGENTS_SECTION = 'agents'

/** Null for a part that failed. */
export interface AgentsFigures {
  dispatch: DispatchFigures | null
  concurrent: ConcurrentFigures | null
  operations: OperationFigures | null
  /** Why parts have no figures. */
  failures: string[]
}

/** Measures runs of agents. It takes about three minutes for three rounds. A part that fails does not end the others. */
export async function measureAgents(
  system: BenchSystem,
  rounds: number,
  tell: (line: string) => void,
): Promise<AgentsFigures> {
  const failures: string[] = []
  const part = async <Figures>(name: string, measured: () => Promise<Figures>): Promise<Figures | null> => {
    tell(`agents: ${name}`)
    try {
      return await measured()
    } catch (error) {
      const reason = `agents: ${name} failed: ${errorText(error)}`
      tell(reason)
      failures.push(reason)
      return null
    }
  }
  // First, since watchdogs of other runs would be delivered meanwhile.
  const operations = await part('counting operations', () => countOperations(system))
  const dispatch = await part('turns', () => measureDispatch(system, rounds))
  const concurrent = await part('runs at once', () => measureConcurrentRuns(system))
  return { dispatch, concurrent, operations, failures }
}
