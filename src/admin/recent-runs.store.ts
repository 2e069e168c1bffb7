import { and, desc, eq, gt, isNull } from 'drizzle-orm'
import { agents, runs } from '../../schema/agents.ts'
import type { OrganizationScope } from '../ledger/changes/scoped-statements.store.ts'

/** Runs that are listed, and that are read of one agent. */
const MOST_RUNS = 6

/** A run of an agent that began since a time. */
export type RecentRun = Pick<
  typeof runs.$inferSelect,
  'id' | 'agentId' | 'status' | 'step' | 'createdAt' | 'endedAt'
> & { agent: string }

/** The latest runs of an organization since a time, newest first, but for those of removed agents. Runs have an index by agent. */
export function selectRecentRuns(
  { database, organizationId }: OrganizationScope,
  since: Date,
): Promise<RecentRun[]> {
  const latest = database
    .select({
      id: runs.id,
      status: runs.status,
      step: runs.step,
      createdAt: runs.createdAt,
      endedAt: runs.endedAt,
    })
    .from(runs)
    .where(and(eq(runs.agentId, agents.id), gt(runs.createdAt, since)))
    .orderBy(desc(runs.createdAt))
    .limit(MOST_RUNS)
    .as('latest')
  return database
    .select({
      id: latest.id,
      agentId: agents.id,
      agent: agents.name,
      status: latest.status,
      step: latest.step,
      createdAt: latest.createdAt,
      endedAt: latest.endedAt,
    })
    .from(agents)
    .innerJoinLateral(latest, gt(latest.createdAt, since))
    .where(and(eq(agents.organizationId, organizationId), isNull(agents.deletedAt)))
    .orderBy(desc(latest.createdAt))
    .limit(MOST_RUNS)
}
