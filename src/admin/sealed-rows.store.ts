import { eq, type SQL, sql } from 'drizzle-orm'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import { agentTriggers, runs } from '../../schema/agents.ts'
import type { Database } from '../../schema/database.ts'
import { identityProviders } from '../../schema/identity-providers.ts'
import { connections, integrations } from '../../schema/integrations.ts'
import { providers } from '../../schema/models.ts'
import type { RotatedTable } from '../wire/vault.ts'

// Rotation is of the deployment: it passes over the rows of every organization.

/** A sealed text, and the row that has it. */
export interface SealedRow {
  /** Orders the rows of a rotation; of a webhook's secret its agent and name, joined by `-`. */
  id: string
  /** Null for a row of the deployment. */
  organizationId: string | null
  /** Null for a row that has nothing sealed, or only under the current key. */
  sealed: string | null
}

/** The column that stores a kind of secret. */
interface SealedColumn {
  table: PgTable
  id: SQL | PgColumn
  /** The order of the rows, which an index has; that of the id where it is left out. */
  order?: { columns: SQL; isAfter: (id: string) => SQL }
  organizationId: PgColumn | null
  sealed: PgColumn
  /** The id of the key, where it is stored beside what is sealed; else the sealed text begins with it. */
  keyId?: PgColumn
}

const WEBHOOK_ID = sql`(${agentTriggers.agentId}::text || '-' || ${agentTriggers.name})`
/** Characters of a UUID. */
const UUID_LENGTH = 36

/** The agent and the name in the id of a webhook's secret. */
export const webhookOf = (id: string): { agentId: string; name: string } => ({
  agentId: id.slice(0, UUID_LENGTH),
  name: id.slice(UUID_LENGTH + 1),
})

const COLUMNS: Record<RotatedTable, SealedColumn> = {
  connections: {
    table: connections,
    id: connections.id,
    organizationId: connections.organizationId,
    sealed: connections.sealedCredential,
    keyId: connections.vaultKeyId,
  },
  client_secrets: {
    table: integrations,
    id: integrations.id,
    organizationId: integrations.organizationId,
    sealed: integrations.sealedClientSecret,
  },
  providers: { table: providers, id: providers.id, organizationId: null, sealed: providers.sealedCredential },
  webhook_secrets: {
    table: agentTriggers,
    id: WEBHOOK_ID,
    order: {
      columns: sql`${agentTriggers.agentId}, ${agentTriggers.name}`,
      isAfter(id) {
        const { agentId, name } = webhookOf(id)
        return sql`(${agentTriggers.agentId}, ${agentTriggers.name}) > (${agentId}::uuid, ${name}::text)`
      },
    },
    organizationId: agentTriggers.organizationId,
    sealed: agentTriggers.sealedSecret,
  },
  run_inputs: {
    table: runs,
    id: runs.id,
    organizationId: runs.organizationId,
    sealed: runs.sealedInputs,
  },
  identity_providers: {
    table: identityProviders,
    id: identityProviders.organizationId,
    organizationId: identityProviders.organizationId,
    sealed: identityProviders.sealedClientSecret,
  },
}

/**
 * A page of rows by id, with what is not sealed under a key of the vault. Rows that need nothing are on it too: a search for the next
 * one that does would read the whole table.
 * @param after null from the first one on.
 */
export async function selectOldRows(
  database: Database,
  kind: RotatedTable,
  keyId: string,
  { after, limit }: { after: string | null; limit: number },
): Promise<SealedRow[]> {
  const column = COLUMNS[kind]
  const { table, id, sealed, organizationId, order } = column
  const isLater = after === null ? sql`true` : (order?.isAfter(after) ?? sql`${id} > ${after}`)
  const { rows } = await database.execute<{
    id: string
    organizationId: string | null
    sealed: string | null
  }>(
    sql`
    SELECT ${id} AS id, ${organizationId ?? sql`NULL`} AS "organizationId",
      CASE WHEN NOT (${isUnder(column, keyId)}) THEN ${sealed} END AS sealed
    FROM ${table} WHERE ${isLater} ORDER BY ${order?.columns ?? id} LIMIT ${limit}`,
  )
  return rows
}

/** Ids of keys may have an underscore, which is a wildcard. */
const isUnder = ({ sealed, keyId: column }: SealedColumn, keyId: string): SQL =>
  column ? eq(column, keyId) : sql`${sealed} LIKE ${`v1.${keyId.replace(/[\\%_]/g, '\\$&')}.%`}`

/** Stores a sealed text, unless another one was stored meanwhile. The sealed secret is the same, so its version is kept. */
export async function updateSealedRow(
  database: Database,
  kind: RotatedTable,
  row: SealedRow & { sealed: string },
  resealed: { sealed: string; keyId: string },
): Promise<void> {
  const { table, id, organizationId, sealed, keyId } = COLUMNS[kind]
  const isOfOrganization = organizationId ? eq(organizationId, row.organizationId) : sql`true`
  const key = keyId ? sql`, ${sql.identifier(keyId.name)} = ${resealed.keyId}` : sql``
  await database.execute(sql`
    UPDATE ${table} SET ${sql.identifier(sealed.name)} = ${resealed.sealed}${key}
    WHERE ${id} = ${row.id} AND ${isOfOrganization} AND ${sealed} = ${row.sealed}`)
}
