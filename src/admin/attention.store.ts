import { and, asc, desc, eq, gt, isNull, lte, type SQL, sql } from 'drizzle-orm'
import { agents, runs } from '../../schema/agents.ts'
import { apiKeys } from '../../schema/identity.ts'
import { connections, integrations, toolDefinitions } from '../../schema/integrations.ts'
import { equal, type OrganizationScope } from '../ledger/changes/scoped-statements.store.ts'

/** Something that needs somebody. */
export interface Subject {
  id: string
  name: string
  /** How many there are, for subjects that collect some. */
  count: number
  since: Date
}

/** Rows of one kind that are read: more need a page of their own. */
const MOST_OF_A_KIND = 20
/** Failed runs of one agent that are counted. */
const MOST_RUNS = 100

const one = sql<number>`1`.mapWith(Number)

/** Agents with runs that have failed since a time, the latest first. Of an agent, at most 100 runs are counted. */
export async function selectFailingAgents(
  { database, organizationId }: OrganizationScope,
  since: Date,
): Promise<Subject[]> {
  const failed = database
    .select({ createdAt: runs.createdAt })
    .from(runs)
    .where(and(eq(runs.agentId, agents.id), eq(runs.status, 'failure'), gt(runs.createdAt, since)))
    .orderBy(desc(runs.createdAt))
    .limit(MOST_RUNS)
    .as('failed')
  const counted = database
    .select({
      count: sql<number>`count(*)`.mapWith(Number).as('failed_count'),
      latest: sql<Date>`max(${failed.createdAt})`.mapWith(runs.createdAt).as('latest'),
    })
    .from(failed)
    .as('counted')
  return database
    .select({ id: agents.id, name: agents.name, count: counted.count, since: counted.latest })
    .from(agents)
    .innerJoinLateral(counted, gt(counted.count, 0))
    .where(and(eq(agents.organizationId, organizationId), isNull(agents.deletedAt)))
    .orderBy(desc(counted.latest))
    .limit(MOST_OF_A_KIND)
}

/** Connections whose credentials were refused, those that wait longest first. @param ownerId those of one user only. */
export function selectConnectionsToRenew(
  { database, organizationId }: OrganizationScope,
  ownerId: string | undefined,
): Promise<Subject[]> {
  return database
    .select({ id: connections.id, name: connections.displayName, count: one, since: connections.updatedAt })
    .from(connections)
    .where(
      and(
        eq(connections.organizationId, organizationId),
        eq(connections.status, 'needs_reauth'),
        equal(connections.ownerUserId, ownerId),
      ),
    )
    .orderBy(asc(connections.updatedAt))
    .limit(MOST_OF_A_KIND)
}

/** Keys that expire in a period, the first ones first. `since` is the time of expiry. @param userId those of one user only. */
export function selectExpiringKeys(
  { database, organizationId }: OrganizationScope,
  userId: string | undefined,
  { from, to }: { from: Date; to: Date },
): Promise<Subject[]> {
  const isManaged: SQL | undefined = and(
    isNull(apiKeys.sessionId),
    isNull(apiKeys.revokedAt),
    isNull(apiKeys.replacedBy),
  )
  return database
    .select({
      id: apiKeys.id,
      name: apiKeys.label,
      count: one,
      since: sql<Date>`${apiKeys.expiresAt}`.mapWith(apiKeys.expiresAt),
    })
    .from(apiKeys)
    .where(
      and(
        eq(apiKeys.organizationId, organizationId),
        isManaged,
        gt(apiKeys.expiresAt, from),
        lte(apiKeys.expiresAt, to),
        equal(apiKeys.userId, userId),
      ),
    )
    .orderBy(asc(apiKeys.expiresAt))
    .limit(MOST_OF_A_KIND)
}

/** Integrations with definitions of tools that wait for approval. */
export function selectPendingTools({ database, organizationId }: OrganizationScope): Promise<Subject[]> {
  const first = sql<Date>`min(${toolDefinitions.createdAt})`.mapWith(toolDefinitions.createdAt)
  return database
    .select({
      id: integrations.id,
      name: integrations.displayName,
      count: sql<number>`count(*)`.mapWith(Number),
      since: first,
    })
    .from(toolDefinitions)
    .innerJoin(integrations, eq(integrations.id, toolDefinitions.integrationId))
    .where(and(eq(toolDefinitions.organizationId, organizationId), eq(toolDefinitions.state, 'pending')))
    .groupBy(integrations.id)
    .orderBy(asc(first))
    .limit(MOST_OF_A_KIND)
}
