import { type SQL, sql } from 'drizzle-orm'
import { agents, runs } from '../../schema/agents.ts'
import { dlpPolicies } from '../../schema/dlp.ts'
import { calls } from '../../schema/governance.ts'
import { apiKeys, groups, memberships, users } from '../../schema/identity.ts'
import { connections, integrations } from '../../schema/integrations.ts'
import { models } from '../../schema/models.ts'
import type { OrganizationScope } from '../ledger/changes/scoped-statements.store.ts'
import { isUuid } from '../wire/management-fields.ts'
import type { FoundKind } from '../wire/records.ts'

export interface Found {
  kind: FoundKind
  id: string
  label: string
}

/** Of what a caller may find something: of a user only, of all of the organization (null), or of nothing (undefined). */
export type FindReach = Record<FoundKind, string | null | undefined>

/** Things of one kind that are found. */
const MOST_OF_A_KIND = 5

/** How one kind is searched: rows of an organization with `id` and `label`. */
interface Searched {
  from: SQL
  id: SQL
  label: SQL
  /** The user that a row belongs to. */
  owner: SQL
  organization: SQL
  /** Rows that fit, by an id or by a part of a name. */
  fits: (text: string, part: string) => SQL
}

const like = (column: SQL, part: string) => sql`${column} ILIKE ${part}`
/** Compared as it is stored, so that Postgres reads by the primary key. */
const isId = (id: SQL, text: string) => (isUuid(text) ? sql`${id} = ${text}::uuid` : sql`false`)

/** The owner of rows that belong to no user. */
const NOBODY = sql`NULL`

const SEARCHED: Record<Exclude<FoundKind, 'model'>, Searched> = {
  call: {
    from: sql`${calls}`,
    id: sql`calls.id`,
    label: sql`concat_ws(' ', coalesce(calls.model_id, calls.tool, calls.action), calls.outcome)`,
    owner: sql`calls.user_id`,
    organization: sql`calls.organization_id`,
    fits: (text) => sql`(calls.id = ${text} OR calls.request_id = ${text})`,
  },
  response: {
    from: sql`(SELECT organization_id, response_id AS id, user_id FROM ${calls}) AS found`,
    id: sql`found.id`,
    label: sql`found.id`,
    owner: sql`found.user_id`,
    organization: sql`found.organization_id`,
    fits: (text) => sql`found.id = ${text}`,
  },
  run: {
    from: sql`${runs}`,
    id: sql`runs.id::text`,
    label: sql`runs.status`,
    owner: sql`runs.user_id::text`,
    organization: sql`runs.organization_id`,
    fits: (text) => isId(sql`runs.id`, text),
  },
  key: {
    from: sql`${apiKeys}`,
    id: sql`api_keys.id`,
    label: sql`api_keys.label`,
    owner: sql`api_keys.user_id::text`,
    organization: sql`api_keys.organization_id`,
    fits: (text, part) =>
      sql`api_keys.session_id IS NULL AND (starts_with(api_keys.id, ${text}) OR ${like(sql`api_keys.label`, part)})`,
  },
  user: {
    from: sql`${memberships} JOIN ${users} ON users.id = memberships.user_id`,
    id: sql`users.id::text`,
    label: sql`users.name || ' (' || users.email || ')'`,
    owner: sql`users.id::text`,
    organization: sql`memberships.organization_id`,
    fits: (text, part) =>
      sql`(${isId(sql`users.id`, text)} OR ${like(sql`users.name`, part)} OR ${like(sql`users.email`, part)})`,
  },
  group: named(sql`${groups}`, 'groups', 'name'),
  policy: named(sql`${dlpPolicies}`, 'dlp_policies', 'name', NOBODY, sql`dlp_policies.deleted_at IS NULL`),
  agent: named(
    sql`${agents}`,
    'agents',
    'name',
    sql`agents.created_by::text`,
    sql`agents.deleted_at IS NULL`,
  ),
  integration: named(sql`${integrations}`, 'integrations', 'display_name'),
  connection: named(sql`${connections}`, 'connections', 'display_name', sql`connections.owner_user_id::text`),
}

/** A table whose rows have an id and a name. @param owner of a row. @param condition of rows that can be found. */
function named(from: SQL, table: string, name: string, owner = NOBODY, condition = sql`true`): Searched {
  const column = (of: string) => sql.raw(`${table}.${of}`)
  return {
    from,
    id: sql`${column('id')}::text`,
    label: column(name),
    owner,
    organization: column('organization_id'),
    fits: (text, part) =>
      sql`${condition} AND (${column('id')}::text = ${text} OR ${like(column(name), part)})`,
  }
}

/** Finds what a text names, in reach: calls, responses and runs by their whole id, the others by a part of their name too. */
export async function selectFound(
  { database, organizationId }: OrganizationScope,
  text: string,
  reach: FindReach,
): Promise<Found[]> {
  const part = `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
  const kinds = (Object.keys(SEARCHED) as Array<keyof typeof SEARCHED>).filter(
    (kind) => reach[kind] !== undefined,
  )
  const selects = kinds.map((kind) => {
    const { from, id, label, owner, organization, fits } = SEARCHED[kind]
    const own = reach[kind] === null ? sql`true` : sql`${owner} = ${reach[kind]}`
    return sql`(SELECT DISTINCT ${kind}::text AS kind, ${id} AS id, ${label} AS label FROM ${from}
      WHERE ${organization} = ${organizationId}::uuid AND ${own} AND ${fits(text, part)} ORDER BY 3, 2 LIMIT ${MOST_OF_A_KIND})`
  })
  if (selects.length === 0) return []
  const { rows } = await database.execute<Found & Record<string, unknown>>(
    sql.join(selects, sql` UNION ALL `),
  )
  return rows.map(({ kind, id, label }) => ({ kind, id, label }))
}

/** Ids of models that hold a text: models belong to no organization. */
export async function selectModelIds({ database }: OrganizationScope, text: string): Promise<string[]> {
  const part = `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
  const rows = await database
    .select({ id: models.id })
    .from(models)
    .where(sql`${models.disabledAt} IS NULL AND ${like(sql`${models.id}`, part)}`)
    .orderBy(models.id)
    .limit(50)
  return rows.map(({ id }) => id)
}
