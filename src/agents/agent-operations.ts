import type { AgentOperations } from '../integrations/platform-tools/agent-tools.ts'
import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import type { AgentDeps } from './agent-deps.ts'
import { describeAgent, listVisibleAgents } from './definitions/visible-agents.ts'
import { evaluateRun, ownRun, readRun, readRunSteps, restartRun, startRun } from './own-runs.ts'
import { cancelRun } from './runs/change-run.ts'

/**
 * Agents and runs for the tools of this service.
 * @param change a change that the caller makes to what is its own, which is audited.
 */
export const agentOperations = (deps: AgentDeps, change: () => ChangeScope): AgentOperations => ({
  list: (principal, page) => listVisibleAgents(deps, principal, page),
  describe: (principal, agentId) => describeAgent(deps, principal, agentId),
  start: (principal, request) => startRun(deps, principal, request),
  restart: (principal, runId, idempotencyKey) => restartRun(deps, principal, runId, idempotencyKey),
  readRun: (principal, runId) => readRun(deps, principal, runId),
  readSteps: (principal, runId) => readRunSteps(deps, principal, runId),
  evaluate: (principal, runId) => evaluateRun(deps, principal, runId),
  async cancel(principal, runId) {
    const { status } = await ownRun(deps, principal, runId)
    if (status !== 'cancelled') await cancelRun(deps, change(), runId)
  },
})
