import { type SQL, sql } from 'drizzle-orm'
import { runs } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import { calls } from '../../../schema/governance.ts'
import { apiKeys, entitlements, memberships, passkeys, sessions } from '../../../schema/identity.ts'
import { identities } from '../../../schema/identity-providers.ts'
import { executeInOrder } from '../../../schema/read-in-order.ts'
import { conversations, responseItems, responses } from '../../../schema/responses.ts'
import { textArray } from '../../../schema/sql-values.ts'
import type { Owner } from '../../responses/model/types.ts'
import { ownedBy } from '../../responses/store/rows.store.ts'
import type { Position } from './person-rows.store.ts'

// What an export has of each table. Columns are named one by one: a new one may be a credential.

/** A row under the names of its columns. */
export type ExportedRow = Record<string, unknown>

/** Rows as JSON, so that times have one form. */
async function rowsOf(database: Database, select: SQL): Promise<ExportedRow[]> {
  const { rows } = await database.execute<{ row: ExportedRow }>(
    sql`SELECT to_jsonb(part) AS row FROM (${select}) AS part`,
  )
  return rows.map(({ row }) => row)
}

/** The person and what is listed under it: a few rows of each table. */
export async function selectPersonRows(
  database: Database,
  owner: Owner,
): Promise<Array<{ type: string; rows: ExportedRow[] }>> {
  const { organizationId, userId } = owner
  const selects: Record<string, SQL> = {
    user: sql`SELECT id, email, name, kind, created_at FROM users WHERE id = ${userId}::uuid`,
    membership: sql`SELECT role, rate_limit_per_minute, last_signed_in_at, disabled_at, created_at FROM memberships WHERE ${ownedBy(memberships, owner)}`,
    group: sql`SELECT groups.id, groups.name, group_memberships.created_at FROM group_memberships
      JOIN groups ON groups.id = group_id WHERE group_memberships.organization_id = ${organizationId}::uuid
      AND group_memberships.user_id = ${userId}::uuid`,
    entitlement: sql`SELECT name, created_at FROM entitlements WHERE ${ownedBy(entitlements, owner)}`,
    key: sql`SELECT id, label, scopes, compatibility, expires_at, revoked_at, last_used_at, created_at FROM api_keys
      WHERE ${ownedBy(apiKeys, owner)} AND session_id IS NULL`,
    passkey: sql`SELECT id, name, last_used_at, created_at FROM passkeys WHERE ${ownedBy(passkeys, owner)}`,
    session: sql`SELECT id, method, user_agent, signed_in_at, last_seen_at, ended_at FROM sessions WHERE ${ownedBy(sessions, owner)}`,
    identity: sql`SELECT issuer, subject, last_used_at, created_at FROM identities WHERE ${ownedBy(identities, owner)}`,
    connection: sql`SELECT id, display_name, broker, hint, status, created_at FROM connections
      WHERE organization_id = ${organizationId}::uuid AND owner_user_id = ${userId}::uuid`,
  }
  const parts = []
  for (const [type, select] of Object.entries(selects))
    parts.push({ type, rows: await rowsOf(database, select) })
  return parts
}

/** What an export has of tables with many rows. `text` is their long column; null without one. */
const LISTED = {
  run: {
    table: runs,
    columns: sql`id, agent_id, agent_version, conversation_id, origin, status, result, created_at, ended_at`,
    text: runs.result,
  },
  conversation: { table: conversations, columns: sql`id, created_at`, text: null },
  response: {
    table: responses,
    columns: sql`id, conversation_id, previous_response_id, model, status, body, created_at, completed_at`,
    text: responses.body,
  },
  item: {
    table: responseItems,
    columns: sql`id, response_id, type, role, body, content_key, created_at`,
    text: responseItems.body,
  },
}

export type ListedType = keyof typeof LISTED

/** A row, and the bytes of its long column. */
export interface RowSize {
  id: string
  bytes: number
}

/** Sizes of the person's rows with these ids, in their order by time. */
export const selectSizes = (
  database: Database,
  type: ListedType,
  owner: Owner,
  ids: readonly string[],
): Promise<RowSize[]> => sizesOf(database, type, owner, sql`id = ANY(${idsOf(type, ids)})`)

/** Sizes of the items that responses of the person brought in, by response, and by time in each. */
export const selectItemSizes = (
  database: Database,
  owner: Owner,
  responseIds: readonly string[],
): Promise<RowSize[]> =>
  sizesOf(database, 'item', owner, sql`${responseItems.responseId} = ANY(${textArray(responseIds)})`)

async function sizesOf(
  database: Database,
  type: ListedType,
  owner: Owner,
  condition: SQL,
): Promise<RowSize[]> {
  const { table, text } = LISTED[type]
  // The length of a text is read without the text.
  const bytes = text === null ? sql`0` : sql`coalesce(octet_length(${text}), 0)`
  const { rows } = await database.execute<{ id: string; bytes: number }>(
    sql`SELECT ${table.id}::text AS id, ${bytes} AS bytes FROM ${table} WHERE ${ownedBy(table, owner)} AND ${condition}
      ORDER BY ${type === 'item' ? sql`response_id, ` : sql``}created_at, id`,
  )
  return rows
}

/** Rows of the person with these ids, in the order of `selectSizes`. */
export const selectRowsById = (
  database: Database,
  type: ListedType,
  owner: Owner,
  ids: readonly string[],
): Promise<ExportedRow[]> => {
  const { table, columns } = LISTED[type]
  return rowsOf(
    database,
    sql`SELECT ${columns} FROM ${table} WHERE ${ownedBy(table, owner)} AND id = ANY(${idsOf(type, ids)})
      ORDER BY ${type === 'item' ? sql`response_id, ` : sql``}created_at, id`,
  )
}

const idsOf = (type: ListedType, ids: readonly string[]): SQL =>
  type === 'run' ? sql`${textArray(ids)}::uuid[]` : textArray(ids)

/**
 * Calls of the person, the newest first, read in the order of the index by user: a page reads as many rows as it has, however many calls
 * there are.
 * @param most rows of the page.
 */
export async function selectCallsOf(
  database: Database,
  { organizationId, userId }: Owner,
  after: Position | null,
  most: number,
): Promise<{ rows: ExportedRow[]; next: Position | null }> {
  const isAfter = after === null ? sql`true` : sql`(at, id) < (${after.at}::timestamptz, ${after.id}::text)`
  const parts = await executeInOrder<{ row: ExportedRow }>(
    database,
    sql`SELECT to_jsonb(part) AS row FROM (
      SELECT id, at, request_id, key_id, surface, action, model_id, tool, provider, response_id, run_id, status,
        error_code, input_tokens, output_tokens, cost FROM ${calls}
      WHERE organization_id = ${organizationId}::uuid AND user_id = ${userId} AND ${isAfter}
      ORDER BY at DESC, id DESC LIMIT ${most}) AS part`,
  )
  const rows = parts.map(({ row }) => row)
  const last = rows.at(-1)
  const next = rows.length < most || !last ? null : { at: String(last.at), id: String(last.id) }
  return { rows, next }
}
