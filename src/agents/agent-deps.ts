import type { ResponseDeps } from '../responses/response-deps.ts'
import type { RunQueue } from './queue/run-queue.ts'

/** Dependencies of agents and runs. */
export interface AgentDeps extends ResponseDeps {
  /** Null where QStash is not configured. */
  runQueue: RunQueue | null
  configuration: ResponseDeps['configuration'] & {
    RUN_DELIVERY_MS: number
  }
}
