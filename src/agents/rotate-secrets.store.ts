import { and, asc, eq, gt, isNotNull, notLike, sql } from 'drizzle-orm'
import { agentTriggers, runs } from '../../schema/agents.ts'
import type { Database } from '../../schema/database.ts'

// Rotation is of the deployment: it passes over the rows of every organization.

/** Ids of keys may have an underscore, which is a wildcard. */
const sealedUnder = (keyId: string) => `v1.${keyId.replace(/[\\%_]/g, '\\$&')}.%`

/** A sealed text, and the row that has it. */
export interface SealedRow {
  /** Orders the rows of a rotation. */
  id: string
  organizationId: string
  sealed: string
}

/** Secrets of webhooks that are not sealed under the current key of the vault, by agent and name. */
export async function selectOldWebhookSecrets(
  database: Database,
  keyId: string,
  after: string,
  limit: number,
) {
  const { agentId, name, organizationId, sealedSecret } = agentTriggers
  const id = sql<string>`${agentId}::text || '-' || ${name}`
  const rows = await database
    .select({ id, agentId, name, organizationId, sealed: sql<string>`${sealedSecret}` })
    .from(agentTriggers)
    .where(and(isNotNull(sealedSecret), notLike(sealedSecret, sealedUnder(keyId)), gt(id, after)))
    .orderBy(asc(id))
    .limit(limit)
  return rows
}

/** Stores a sealed secret, unless another one was stored meanwhile. */
export async function updateWebhookSecret(
  database: Database,
  row: SealedRow & { agentId: string; name: string },
  sealed: string,
): Promise<void> {
  await database
    .update(agentTriggers)
    .set({ sealedSecret: sealed })
    .where(
      and(
        eq(agentTriggers.organizationId, row.organizationId),
        eq(agentTriggers.agentId, row.agentId),
        eq(agentTriggers.name, row.name),
        eq(agentTriggers.sealedSecret, row.sealed),
      ),
    )
}

/** Inputs of runs that are not sealed under the current key of the vault, by run. */
export function selectOldInputs(
  database: Database,
  keyId: string,
  after: string,
  limit: number,
): Promise<SealedRow[]> {
  return database
    .select({ id: runs.id, organizationId: runs.organizationId, sealed: runs.sealedInputs })
    .from(runs)
    .where(and(notLike(runs.sealedInputs, sealedUnder(keyId)), gt(runs.id, after)))
    .orderBy(asc(runs.id))
    .limit(limit)
}

export async function updateSealedInputs(database: Database, row: SealedRow, sealed: string): Promise<void> {
  await database
    .update(runs)
    .set({ sealedInputs: sealed })
    .where(
      and(
        eq(runs.organizationId, row.organizationId),
        eq(runs.id, row.id),
        eq(runs.sealedInputs, row.sealed),
      ),
    )
}
