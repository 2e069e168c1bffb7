import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import type { Owner } from '../../responses/model/types.ts'
import type { Position } from './person-rows.store.ts'

// What an export has of each table. Columns are named one by one: a new one may be a credential.

/** A row under the names of its columns. */
export type ExportedRow = Record<string, unknown>

const owned = ({ organizationId, userId }: Owner) =>
  sql`organization_id = ${organizationId}::uuid AND user_id = ${userId}::uuid`

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
    membership: sql`SELECT role, rate_limit_per_minute, last_signed_in_at, disabled_at, created_at FROM memberships WHERE ${owned(owner)}`,
    group: sql`SELECT groups.id, groups.name, group_memberships.created_at FROM group_memberships
      JOIN groups ON groups.id = group_id WHERE group_memberships.organization_id = ${organizationId}::uuid
      AND group_memberships.user_id = ${userId}::uuid`,
    entitlement: sql`SELECT name, created_at FROM entitlements WHERE ${owned(owner)}`,
    key: sql`SELECT id, label, scopes, compatibility, expires_at, revoked_at, last_used_at, created_at FROM api_keys
      WHERE ${owned(owner)} AND session_id IS NULL`,
    passkey: sql`SELECT id, name, last_used_at, created_at FROM passkeys WHERE ${owned(owner)}`,
    session: sql`SELECT id, method, user_agent, signed_in_at, last_seen_at, ended_at FROM sessions WHERE ${owned(owner)}`,
    identity: sql`SELECT issuer, subject, last_used_at, created_at FROM identities WHERE ${owned(owner)}`,
    connection: sql`SELECT id, display_name, broker, hint, status, created_at FROM connections
      WHERE organization_id = ${organizationId}::uuid AND owner_user_id = ${userId}::uuid`,
  }
  const parts = []
  for (const [type, select] of Object.entries(selects))
    parts.push({ type, rows: await rowsOf(database, select) })
  return parts
}

const COLUMNS = {
  runs: sql`id, agent_id, agent_version, conversation_id, origin, status, result, created_at, ended_at`,
  conversations: sql`id, created_at`,
  responses: sql`id, conversation_id, previous_response_id, model, status, body, created_at, completed_at`,
}

/** Rows of the person with these ids. */
export const selectRowsById = (
  database: Database,
  table: keyof typeof COLUMNS,
  owner: Owner,
  ids: readonly string[],
): Promise<ExportedRow[]> =>
  rowsOf(
    database,
    sql`SELECT ${COLUMNS[table]} FROM ${sql.identifier(table)} WHERE ${owned(owner)} AND id = ANY(${arrayOf(ids)}${
      table === 'runs' ? sql`::uuid[]` : sql`::text[]`
    })`,
  )

/** Items that responses brought in, with the key of content that the content store has. */
export const selectItemsOf = (
  database: Database,
  owner: Owner,
  responseIds: readonly string[],
): Promise<ExportedRow[]> =>
  rowsOf(
    database,
    sql`SELECT id, response_id, type, role, body, content_key, created_at FROM response_items
      WHERE ${owned(owner)} AND response_id = ANY(${arrayOf(responseIds)}::text[]) ORDER BY created_at, id`,
  )

/** Calls of the person, the newest first. */
export async function selectCallsOf(
  database: Database,
  { organizationId, userId }: Owner,
  after: Position | null,
  most: number,
): Promise<{ rows: ExportedRow[]; next: Position | null }> {
  const isAfter = after === null ? sql`true` : sql`(at, id) < (${after.at}::timestamptz, ${after.id}::text)`
  const rows = await rowsOf(
    database,
    sql`SELECT id, at, request_id, key_id, surface, action, model_id, tool, provider, response_id, run_id, status,
      error_code, input_tokens, output_tokens, cost FROM calls
      WHERE organization_id = ${organizationId}::uuid AND user_id = ${userId} AND ${isAfter}
      ORDER BY at DESC, id DESC LIMIT ${most}`,
  )
  const last = rows.at(-1)
  const next = rows.length < most || !last ? null : { at: String(last.at), id: String(last.id) }
  return { rows, next }
}

const arrayOf = (ids: readonly string[]) => sql`${`{${ids.map((id) => JSON.stringify(id)).join(',')}}`}`
