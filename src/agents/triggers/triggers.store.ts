import { and, eq, isNull, sql } from 'drizzle-orm'
import { agents, agentTriggers, agentVersions } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import type { InputValue } from '../../wire/agents.ts'
import type { RunnableAgent } from '../runs/begin-run.store.ts'

/** Identifies a trigger of an agent. */
export interface TriggerKey {
  organizationId: string
  agentId: string
  name: string
}

/** A trigger of which QStash may have another state. */
export interface UnpublishedTrigger extends TriggerKey {
  kind: 'schedule' | 'webhook'
  cron: string | null
  removedAt: Date | null
}

const isTrigger = ({ organizationId, agentId, name }: TriggerKey) =>
  and(
    eq(agentTriggers.organizationId, organizationId),
    eq(agentTriggers.agentId, agentId),
    eq(agentTriggers.name, name),
  )

/** @param agentId null: of every agent of the deployment. */
export function selectUnpublished(
  database: Database,
  agentId: string | null,
  most: number,
): Promise<UnpublishedTrigger[]> {
  const { organizationId, name, kind, cron, removedAt } = agentTriggers
  return database
    .select({ organizationId, agentId: agentTriggers.agentId, name, kind, cron, removedAt })
    .from(agentTriggers)
    .where(
      and(
        isNull(agentTriggers.publishedAt),
        agentId === null ? undefined : eq(agentTriggers.agentId, agentId),
      ),
    )
    .limit(most)
}

/** Stores that QStash has this state. A trigger that has changed meanwhile stays unpublished. */
export async function markTriggerPublished(database: Database, trigger: UnpublishedTrigger): Promise<void> {
  const { kind, cron } = trigger
  await database
    .update(agentTriggers)
    .set({ publishedAt: sql`now()` })
    .where(
      and(
        isTrigger(trigger),
        isNull(agentTriggers.removedAt),
        eq(agentTriggers.kind, kind),
        cron === null ? isNull(agentTriggers.cron) : eq(agentTriggers.cron, cron),
      ),
    )
}

/** Deletes a removed trigger, unless it was added again. */
export async function deleteRemovedTrigger(database: Database, trigger: TriggerKey): Promise<void> {
  await database
    .delete(agentTriggers)
    .where(and(isTrigger(trigger), sql`${agentTriggers.removedAt} is not null`))
}

/** A trigger with its agent, as far as runs depend on it. */
export interface FiringTrigger {
  agent: RunnableAgent
  kind: 'schedule' | 'webhook'
  inputs: InputValue[]
  sealedSecret: string | null
}

/** @returns null for one that the current version of the agent does not have. */
export async function selectTrigger(database: Database, key: TriggerKey): Promise<FiringTrigger | null> {
  const [row] = await database
    .select({
      id: agents.id,
      version: agents.version,
      createdBy: agents.createdBy,
      definition: agentVersions.definition,
      kind: agentTriggers.kind,
      inputs: agentTriggers.inputs,
      sealedSecret: agentTriggers.sealedSecret,
    })
    .from(agentTriggers)
    .innerJoin(
      agents,
      and(eq(agents.id, agentTriggers.agentId), eq(agents.organizationId, agentTriggers.organizationId)),
    )
    .innerJoin(
      agentVersions,
      and(eq(agentVersions.agentId, agents.id), eq(agentVersions.version, agents.version)),
    )
    .where(and(isTrigger(key), isNull(agentTriggers.removedAt), isNull(agents.deletedAt)))
  if (!row) return null
  const { kind, inputs, sealedSecret, ...agent } = row
  return { agent, kind, inputs, sealedSecret }
}

/** The organization of an agent. The only query here without an organization id, because it finds the organization. */
export async function findOrganization(database: Database, agentId: string): Promise<string | null> {
  const [row] = await database
    .select({ organizationId: agents.organizationId })
    .from(agents)
    .where(and(eq(agents.id, agentId), isNull(agents.deletedAt)))
  return row?.organizationId ?? null
}
