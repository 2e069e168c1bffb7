import type { Database } from '../../../schema/database.ts'
import type { Principal } from '../../identity/principal.ts'
import { hasScope } from '../../identity/principal.ts'
import { notFound } from '../../lib/api-error.ts'
import type { AgentDetail, AgentSummary } from '../../wire/agent-answers.ts'
import { storedDefinition } from './stored-definition.ts'
import {
  type RunnableVisibleAgent,
  selectRecentRuns,
  selectVisibleAgent,
  selectVisibleAgents,
  type VisibleAgent,
} from './visible-agents.store.ts'

const MOST_RECENT_RUNS = 10

interface ReadDeps {
  database: Database
}

/**
 * Whether the caller's key may be used for agents and runs. For any other key there are no agents: a denial is not
 * distinguishable from a missing agent (interface, Authentication 6).
 */
export const mayUseAgents = (principal: Principal): boolean => hasScope(principal, 'agents')

/** The agents that a caller may run, by name. @param page.search in names and descriptions, whatever the case. */
export async function listVisibleAgents(
  { database }: ReadDeps,
  principal: Principal,
  page: { limit: number; offset: number; search?: string | undefined },
): Promise<{ items: AgentSummary[]; total: number }> {
  if (!mayUseAgents(principal)) return { items: [], total: 0 }
  const { items, total } = await selectVisibleAgents(database, principal, page)
  return { items: items.map(summaryOf), total }
}

/** @param id a UUID. @returns null for an agent that the caller may not see. */
export const findVisibleAgent = async (
  { database }: ReadDeps,
  principal: Principal,
  id: string,
): Promise<RunnableVisibleAgent | null> =>
  mayUseAgents(principal) ? selectVisibleAgent(database, principal, id) : null

/** Finds an agent that the caller may see. @throws ApiError not_found for an agent that the caller may not see. */
export async function visibleAgent(
  deps: ReadDeps,
  principal: Principal,
  id: string,
): Promise<RunnableVisibleAgent> {
  const agent = await findVisibleAgent(deps, principal, id)
  if (agent === null) throw notFound('Agent', id)
  return agent
}

/** An agent with the caller's last runs of it. @throws ApiError as `visibleAgent`. */
export async function describeAgent(deps: ReadDeps, principal: Principal, id: string): Promise<AgentDetail> {
  const agent = await visibleAgent(deps, principal, id)
  const { inputs, steps } = storedDefinition(agent.definition)
  const runs = await selectRecentRuns(deps.database, principal, agent.id, MOST_RECENT_RUNS)
  return {
    agentId: agent.id,
    name: agent.name,
    description: agent.description,
    inputs: inputs.map(({ name }) => name),
    hasTriggers: agent.hasTriggers,
    modelsInUse: [...new Set(steps.map(({ model }) => model))],
    recentRunIds: runs.map((run) => run.id),
    lastRunAtUtc: runs[0]?.createdAt.toISOString() ?? null,
    metadata: agent.metadata,
  }
}

const summaryOf = ({
  id,
  name,
  description,
  createdAt,
  creatorName,
  metadata,
}: VisibleAgent): AgentSummary => ({
  agentId: id,
  name,
  description,
  createdAt: createdAt.toISOString(),
  creatorName,
  metadata,
})
