import { type SQL, sql } from 'drizzle-orm'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import { runRequests, runs } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import {
  apiKeys,
  entitlements,
  groupMemberships,
  memberships,
  passkeys,
  sessions,
  setupLinks,
  users,
} from '../../../schema/identity.ts'
import { identities } from '../../../schema/identity-providers.ts'
import {
  connectionPreferences,
  connections,
  connectSessions,
  integrationGrants,
} from '../../../schema/integrations.ts'
import { grants } from '../../../schema/models.ts'
import { executeInOrder } from '../../../schema/read-in-order.ts'
import { approvalClaims, conversations, responses } from '../../../schema/responses.ts'
import { textArray } from '../../../schema/sql-values.ts'
import type { Owner } from '../../responses/model/types.ts'
import { ownedBy } from '../../responses/store/rows.store.ts'
import { lockMembership, lockUser } from '../lock-members.store.ts'

// Rows of one person in one organization: what the erasure deletes and the export reads. Every statement can be repeated.

/** A table whose rows belong to a person. */
type OwnedTable = PgTable & { organizationId: PgColumn; userId: PgColumn }

const subject = ({ organizationId, userId }: Owner) =>
  sql`organization_id = ${organizationId}::uuid AND subject_type = 'user' AND subject_id = ${userId}`

/** Tables whose rows go at once, by the name of their count. */
const SIGN_IN = { sessions, passkeys, setup_links: setupLinks, identities }
const RIGHTS = {
  entitlements,
  group_memberships: groupMemberships,
  connection_preferences: connectionPreferences,
}
const SUBJECTS = { grants, integration_grants: integrationGrants }

async function deleteRows(database: Database, table: PgTable, condition: SQL): Promise<number> {
  const { rows } = await database.execute(sql`DELETE FROM ${table} WHERE ${condition} RETURNING 1 AS deleted`)
  return rows.length
}

const deleteOwn = (database: Database, table: OwnedTable, owner: Owner): Promise<number> =>
  deleteRows(database, table, ownedBy(table, owner))

async function deleteAll<Table extends PgTable>(
  database: Database,
  tables: Record<string, Table>,
  conditionOf: (table: Table) => SQL,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const [name, table] of Object.entries(tables)) {
    counts[name] = await deleteRows(database, table, conditionOf(table))
  }
  return counts
}

/** Deletes what the person signs in with. */
export const deleteSignIns = (database: Database, owner: Owner): Promise<Record<string, number>> =>
  deleteAll<OwnedTable>(database, SIGN_IN, (table) => ownedBy(table, owner))

/** Deletes rights and preferences. */
export const deleteRights = async (database: Database, owner: Owner): Promise<Record<string, number>> => ({
  ...(await deleteAll<OwnedTable>(database, RIGHTS, (table) => ownedBy(table, owner))),
  ...(await deleteAll<PgTable>(database, SUBJECTS, () => subject(owner))),
})

export const deleteKeys = (database: Database, owner: Owner): Promise<number> =>
  deleteOwn(database, apiKeys, owner)

export const deleteConnectSessions = (database: Database, owner: Owner): Promise<number> =>
  deleteOwn(database, connectSessions, owner)

export const deleteApprovalClaims = (database: Database, owner: Owner): Promise<number> =>
  deleteOwn(database, approvalClaims, owner)

/** A connection that the person owns. */
export interface OwnConnection extends Record<string, unknown> {
  id: string
  broker: 'local' | 'nango'
}

export async function selectOwnConnections(
  database: Database,
  { organizationId, userId }: Owner,
): Promise<OwnConnection[]> {
  const { rows } = await database.execute<OwnConnection>(sql`SELECT id, broker FROM ${connections}
    WHERE organization_id = ${organizationId}::uuid AND owner_user_id = ${userId}::uuid ORDER BY id`)
  return rows
}

export const deleteRunRequests = (database: Database, owner: Owner): Promise<number> =>
  deleteOwn(database, runRequests, owner)

/** Deletes runs of the person. One that is in progress still is cancelled before. @returns how many. */
export const deleteRuns = (database: Database, owner: Owner, ids: readonly string[]): Promise<number> =>
  ids.length === 0
    ? Promise.resolve(0)
    : deleteRows(database, runs, sql`${ownedBy(runs, owner)} AND id = ANY(${textArray(ids)}::uuid[])`)

export async function selectRunsInProgress(
  database: Database,
  { organizationId, userId }: Owner,
): Promise<string[]> {
  const { rows } = await database.execute<{ id: string }>(sql`SELECT id FROM ${runs}
    WHERE organization_id::text = ${organizationId} AND ended_at IS NULL AND user_id = ${userId}::uuid`)
  return rows.map(({ id }) => id)
}

/** A position in the rows of an organization, by their time. */
export interface Position {
  /** As Postgres has it, with microseconds. */
  at: string
  id: string
}

/** Rows of the person in one page. */
const MOST_OWN = 500

interface OwnRows {
  rows: Position[]
  /** The last row that was examined; null at the end of the table. */
  next: Position | null
}

/**
 * Rows of the person among the next ones of the organization: there is no index by person, which every response would write.
 * @param most rows that are examined.
 */
async function selectOwn(
  database: Database,
  { table, time }: { table: PgTable; time: string },
  owner: Owner,
  after: Position | null,
  most: number,
): Promise<OwnRows> {
  const at = sql.identifier(time)
  const isAfter =
    after === null
      ? sql`${at} IS NOT NULL`
      : sql`(${at}, id::text) > (${after.at}::timestamptz, ${after.id}::text)`
  const rows = await executeInOrder<{ id: string; at: string; is_own: boolean }>(
    database,
    sql`
      SELECT id::text AS id, ${at}::text AS at, user_id = ${owner.userId}::uuid AS is_own FROM ${table}
      WHERE organization_id::text = ${owner.organizationId} AND ${isAfter} ORDER BY ${at}, id::text LIMIT ${most}`,
  )
  const own = rows.filter(({ is_own: isOwn }) => isOwn).map(({ id, at: time }) => ({ id, at: time }))
  const taken = own.slice(0, MOST_OWN)
  if (taken.length < own.length) return { rows: taken, next: taken.at(-1) ?? null }
  const last = rows.at(-1)
  return { rows: own, next: rows.length < most || !last ? null : { at: last.at, id: last.id } }
}

const pager =
  (table: PgTable, time: string) =>
  (database: Database, owner: Owner, after: Position | null, most: number): Promise<OwnRows> =>
    selectOwn(database, { table, time }, owner, after, most)

export const selectOwnResponses = pager(responses, 'created_at')
export const selectOwnConversations = pager(conversations, 'created_at')
/** Of runs that have ended. */
export const selectOwnRuns = pager(runs, 'ended_at')

/**
 * Removes the membership, and what identifies the person unless it belongs to another organization as well. The row stays, without its
 * name and address: agents name it as their author.
 * @returns whether there was a membership, and whether the person is anonymous now.
 */
export async function anonymize(
  database: Database,
  owner: Owner,
): Promise<{ membership: number; person: number }> {
  const { organizationId, userId } = owner
  // Else two organizations at the same time would each see the membership in the other one, and both keep the name.
  const [, , { rows: left }, { rows: anonymous }] = await database.batch([
    lockMembership({ database, organizationId }, userId),
    lockUser({ database }, userId),
    database.execute(
      sql`DELETE FROM ${memberships} WHERE ${ownedBy(memberships, owner)} RETURNING 1 AS deleted`,
    ),
    database.execute(sql`UPDATE ${users} SET name = 'Erased user', email = 'erased-' || id || '@erased.invalid'
      WHERE id = ${userId}::uuid AND NOT EXISTS (SELECT FROM ${memberships} WHERE user_id = ${userId}::uuid)
      RETURNING 1 AS anonymous`),
  ])
  return { membership: left.length, person: anonymous.length }
}
