import { and, asc, count, desc, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { agents, agentTriggers, agentVersions, runs } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import { users } from '../../../schema/identity.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Owner } from '../../responses/model/types.ts'

// The agents that a caller may see and run. Others are treated as missing.

/** The user whose agents are selected: its own, those of its groups, and those of the whole organization. */
type Viewer = Pick<Principal, 'organizationId' | 'userId' | 'groupIds'>

function isVisibleTo({ organizationId, userId, groupIds }: Viewer): SQL | undefined {
  return and(
    eq(agents.organizationId, organizationId),
    isNull(agents.deletedAt),
    sql`(${agents.createdBy} = ${userId} OR ${agents.visibility} = 'organization'
      OR (${agents.visibility} = 'groups' AND EXISTS (
        SELECT FROM jsonb_array_elements_text(${agents.groupIds}) AS shared(id)
        JOIN jsonb_array_elements_text(${JSON.stringify(groupIds)}::jsonb) AS own(id) ON own.id = shared.id)))`,
  )
}

const summaryColumns = {
  id: agents.id,
  name: agents.name,
  description: agents.description,
  createdAt: agents.createdAt,
  creatorName: users.name,
  metadata: agents.metadata,
}

export type VisibleAgent = Pick<
  typeof agents.$inferSelect,
  'id' | 'name' | 'description' | 'createdAt' | 'metadata'
> & { creatorName: string }

/** Agents by name. @param search in names and descriptions, whatever the case. */
export async function selectVisibleAgents(
  database: Database,
  viewer: Viewer,
  { limit, offset, search }: { limit: number; offset: number; search?: string | undefined },
): Promise<{ items: VisibleAgent[]; total: number }> {
  const found =
    search === undefined
      ? undefined
      : sql`position(lower(${search}) in lower(${agents.name} || ' ' || ${agents.description})) > 0`
  const condition = and(isVisibleTo(viewer), found)
  const [items, totals] = await database.batch([
    database
      .select(summaryColumns)
      .from(agents)
      .innerJoin(users, eq(users.id, agents.createdBy))
      .where(condition)
      .orderBy(asc(sql`lower(${agents.name})`), asc(agents.id))
      .limit(limit)
      .offset(offset),
    database.select({ total: count() }).from(agents).where(condition),
  ])
  return { items, total: totals[0]?.total ?? 0 }
}

/** An agent with its current definition. */
export type RunnableVisibleAgent = VisibleAgent & {
  createdBy: string
  version: number
  definition: unknown
  hasTriggers: boolean
}

export async function selectVisibleAgent(
  database: Database,
  viewer: Viewer,
  id: string,
): Promise<RunnableVisibleAgent | null> {
  const [row] = await database
    .select({
      ...summaryColumns,
      createdBy: agents.createdBy,
      version: agents.version,
      definition: agentVersions.definition,
      hasTriggers: sql<boolean>`EXISTS (SELECT FROM ${agentTriggers} WHERE ${agentTriggers.agentId} = ${agents.id}
        AND ${agentTriggers.removedAt} IS NULL OFFSET 0)`,
    })
    .from(agents)
    .innerJoin(users, eq(users.id, agents.createdBy))
    .innerJoin(
      agentVersions,
      and(eq(agentVersions.agentId, agents.id), eq(agentVersions.version, agents.version)),
    )
    .where(and(isVisibleTo(viewer), eq(agents.id, id)))
  return row ?? null
}

/** The newest runs of an agent that a user has. */
export function selectRecentRuns(
  database: Database,
  { organizationId, userId }: Owner,
  agentId: string,
  most: number,
): Promise<Array<{ id: string; createdAt: Date }>> {
  return database
    .select({ id: runs.id, createdAt: runs.createdAt })
    .from(runs)
    .where(and(eq(runs.organizationId, organizationId), eq(runs.userId, userId), eq(runs.agentId, agentId)))
    .orderBy(desc(runs.createdAt), desc(runs.id))
    .limit(most)
}
