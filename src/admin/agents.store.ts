import { and, asc, count, desc, eq, isNull, lt, type SQL, sql } from 'drizzle-orm'
import { agents, agentTriggers, agentVersions } from '../../schema/agents.ts'
import {
  equal,
  type OrganizationScope,
  selectPage,
  toPage,
} from '../ledger/changes/scoped-statements.store.ts'
import type { AgentDefinition } from '../wire/agents.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'

// Agents and their versions, as administrators read and change them.

const agentColumns = {
  id: agents.id,
  name: agents.name,
  description: agents.description,
  visibility: agents.visibility,
  groupIds: agents.groupIds,
  createdBy: agents.createdBy,
  version: agents.version,
  createdAt: agents.createdAt,
  updatedAt: agents.updatedAt,
}

export type AgentRow = Pick<typeof agents.$inferSelect, keyof typeof agentColumns>
export type CurrentAgent = AgentRow & { definition: unknown }
export type TriggerRow = Pick<
  typeof agentTriggers.$inferSelect,
  'name' | 'kind' | 'cron' | 'publishedAt' | 'removedAt'
> & { hasSecret: boolean }

const versionColumns = {
  version: agentVersions.version,
  author: agentVersions.author,
  createdAt: agentVersions.createdAt,
}
export type AgentVersionRow = Pick<typeof agentVersions.$inferSelect, keyof typeof versionColumns>

const isAgent = ({ organizationId }: OrganizationScope, id: string) =>
  and(eq(agents.organizationId, organizationId), eq(agents.id, id), isNull(agents.deletedAt))

/** The members of a definition that the agent's row repeats, for lists and rights. */
const repeatedMembers = (definition: AgentDefinition) => ({
  name: definition.name,
  description: definition.description,
  metadata: definition.metadata,
  visibility: definition.visibility,
  groupIds: definition.group_ids,
})

/** @throws the database's unique violation for a taken name. */
export async function insertAgent(
  scope: OrganizationScope,
  agent: { id: string; createdBy: string; author: string; definition: AgentDefinition },
): Promise<void> {
  const { database, organizationId } = scope
  const { id, createdBy, author, definition } = agent
  const row = { id, organizationId, createdBy, version: 1, ...repeatedMembers(definition) }
  await database.batch([
    database.insert(agents).values(row),
    database.insert(agentVersions).values({ agentId: id, version: 1, organizationId, definition, author }),
    database.execute(upsertTriggers(organizationId, id, definition)),
  ])
}

/**
 * Stores the next version of an agent and its triggers, if its version still is the one that the change was made for.
 * @returns whether it was. @throws the database's unique violation for a taken name, and for another change at the same time.
 */
export async function updateAgent(
  scope: OrganizationScope,
  at: { id: string; version: number },
  { author, definition }: { author: string; definition: AgentDefinition },
): Promise<boolean> {
  const { database, organizationId } = scope
  const next = at.version + 1
  const isNext = sql`${agents.id} = ${at.id} AND ${agents.organizationId} = ${organizationId}
    AND ${agents.deletedAt} IS NULL AND ${agents.version} = ${next}`
  const results = await database.batch([
    database
      .update(agents)
      .set({ version: next, updatedAt: sql`now()`, ...repeatedMembers(definition) })
      .where(and(isAgent(scope, at.id), eq(agents.version, at.version))),
    // Violates the primary key, and rolls all back, if another change has made this version.
    database.execute(sql`INSERT INTO ${agentVersions} (agent_id, version, organization_id, definition, author)
      SELECT ${agents.id}, ${next}::int, ${agents.organizationId}, ${JSON.stringify(definition)}::jsonb, ${author}::text
      FROM ${agents} WHERE ${isNext}`),
    database.execute(removeTriggers(organizationId, at.id, definition)),
    database.execute(upsertTriggers(organizationId, at.id, definition, isNext)),
    database.select({ id: agents.id }).from(agents).where(isNext),
  ])
  return results[4].length > 0
}

/** Deletes an agent and its triggers; versions and runs stay. @returns whether it was there. */
export async function deleteAgent(scope: OrganizationScope, id: string): Promise<boolean> {
  const { database, organizationId } = scope
  const [, deleted] = await database.batch([
    database.execute(removeTriggers(organizationId, id, { triggers: [] })),
    database
      .update(agents)
      .set({ deletedAt: sql`now()`, updatedAt: sql`now()` })
      .where(isAgent(scope, id))
      .returning({ id: agents.id }),
  ])
  return deleted.length > 0
}

/** Inserts the triggers of a definition, or changes them. A webhook keeps its secret. */
function upsertTriggers(
  organizationId: string,
  agentId: string,
  { triggers }: Pick<AgentDefinition, 'triggers'>,
  condition: SQL = sql`${agents.id} = ${agentId}`,
): SQL {
  const rows = triggers.map((trigger) => ({
    name: trigger.name,
    kind: trigger.kind,
    cron: trigger.kind === 'schedule' ? trigger.cron : null,
    inputs: trigger.kind === 'schedule' ? trigger.inputs : [],
  }))
  // A webhook has no schedule in QStash.
  return sql`INSERT INTO ${agentTriggers} AS known (agent_id, name, organization_id, kind, cron, inputs, published_at)
    SELECT ${agents.id}, given.name, ${organizationId}::uuid, given.kind, given.cron, given.inputs,
      CASE WHEN given.kind = 'webhook' THEN now() END
    FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS given(name text, kind text, cron text, inputs jsonb)
    JOIN ${agents} ON ${condition}
    ON CONFLICT (agent_id, name) DO UPDATE SET kind = excluded.kind, cron = excluded.cron, inputs = excluded.inputs,
      removed_at = NULL,
      published_at = CASE WHEN known.kind = 'webhook' AND excluded.kind = 'webhook' THEN now() END,
      sealed_secret = CASE WHEN excluded.kind = 'webhook' THEN known.sealed_secret END`
}

/** Marks the triggers that a definition does not have. Their schedules are removed, then their rows. */
function removeTriggers(
  organizationId: string,
  agentId: string,
  { triggers }: Pick<AgentDefinition, 'triggers'>,
): SQL {
  const names = JSON.stringify(triggers.map(({ name }) => name))
  return sql`UPDATE ${agentTriggers} SET removed_at = now(), published_at = NULL, sealed_secret = NULL
    WHERE agent_id = ${agentId} AND organization_id = ${organizationId} AND removed_at IS NULL
      AND name NOT IN (SELECT jsonb_array_elements_text(${names}::jsonb))`
}

const isCurrentVersion = and(eq(agentVersions.agentId, agents.id), eq(agentVersions.version, agents.version))

export async function selectAgent(scope: OrganizationScope, id: string): Promise<CurrentAgent | null> {
  const [row] = await scope.database
    .select({ ...agentColumns, definition: agentVersions.definition })
    .from(agents)
    .innerJoin(agentVersions, isCurrentVersion)
    .where(isAgent(scope, id))
  return row ?? null
}

export function selectAgents(
  { database, organizationId }: OrganizationScope,
  filter: { name?: string | undefined },
  page: PageRequest,
): Promise<Page<AgentRow>> {
  return selectPage(page, { at: agents.createdAt, id: agents.id }, (position, isAfter) =>
    database
      .select({ ...agentColumns, position })
      .from(agents)
      .where(
        and(
          eq(agents.organizationId, organizationId),
          isNull(agents.deletedAt),
          equal(agents.name, filter.name),
          isAfter,
        ),
      ),
  )
}

export async function countAgents({ database, organizationId }: OrganizationScope): Promise<number> {
  const [row] = await database
    .select({ count: count() })
    .from(agents)
    .where(and(eq(agents.organizationId, organizationId), isNull(agents.deletedAt)))
  return row?.count ?? 0
}

/** The triggers of an agent, and those whose schedule is still to be removed. */
export function selectTriggers(
  { database, organizationId }: OrganizationScope,
  agentId: string,
): Promise<TriggerRow[]> {
  const { name, kind, cron, publishedAt, removedAt, sealedSecret } = agentTriggers
  return database
    .select({
      name,
      kind,
      cron,
      publishedAt,
      removedAt,
      hasSecret: sql<boolean>`${sealedSecret} is not null`,
    })
    .from(agentTriggers)
    .where(and(eq(agentTriggers.organizationId, organizationId), eq(agentTriggers.agentId, agentId)))
    .orderBy(asc(name))
}

/** Sets the secret of a webhook. @returns whether the agent has such a trigger. */
export async function updateTriggerSecret(
  { database, organizationId }: OrganizationScope,
  { agentId, name }: { agentId: string; name: string },
  sealedSecret: string,
): Promise<boolean> {
  const rows = await database
    .update(agentTriggers)
    .set({ sealedSecret })
    .where(
      and(
        eq(agentTriggers.organizationId, organizationId),
        eq(agentTriggers.agentId, agentId),
        eq(agentTriggers.name, name),
        eq(agentTriggers.kind, 'webhook'),
        isNull(agentTriggers.removedAt),
      ),
    )
    .returning({ name: agentTriggers.name })
  return rows.length > 0
}

const isVersionOf = ({ organizationId }: OrganizationScope, agentId: string) =>
  and(eq(agentVersions.organizationId, organizationId), eq(agentVersions.agentId, agentId))

/** Versions of an agent, deleted or not, newest first. */
export async function selectAgentVersions(
  scope: OrganizationScope,
  agentId: string,
  page: PageRequest,
): Promise<Page<AgentVersionRow>> {
  const isAfter = page.after === null ? undefined : lt(agentVersions.version, page.after.at)
  const rows = await scope.database
    .select(versionColumns)
    .from(agentVersions)
    .where(and(isVersionOf(scope, agentId), isAfter))
    .orderBy(desc(agentVersions.version))
    .limit(page.limit + 1)
  return toPage(rows, page, ({ version }) => ({ at: version, id: agentId }))
}

export async function selectAgentVersion(
  scope: OrganizationScope,
  agentId: string,
  version: number,
): Promise<(AgentVersionRow & { definition: unknown }) | null> {
  const [row] = await scope.database
    .select({ ...versionColumns, definition: agentVersions.definition })
    .from(agentVersions)
    .where(and(isVersionOf(scope, agentId), eq(agentVersions.version, version)))
  return row ?? null
}
