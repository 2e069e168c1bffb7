import { and, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import { agents, runs } from '../../schema/agents.ts'
import { dlpPolicies } from '../../schema/dlp.ts'
import { calls } from '../../schema/governance.ts'
import { apiKeys, groups, memberships, users } from '../../schema/identity.ts'
import { connections, integrations } from '../../schema/integrations.ts'
import { models } from '../../schema/models.ts'
import type { OrganizationScope } from '../ledger/changes/scoped-statements.store.ts'
import { isConnectionId } from '../wire/connections.ts'
import { isUuid } from '../wire/management-fields.ts'
import type { FoundKind } from '../wire/records.ts'
import type { ReachedUser } from './reach.ts'

export interface Found {
  kind: FoundKind
  id: string
  label: string
}

/** Whose things of each kind may be found. */
export type FindReach = Record<FoundKind, ReachedUser>

/** Things of one kind that are found. */
const MOST_OF_A_KIND = 5

/** How one kind is searched: rows of an organization with `id` and `label`. */
interface Searched {
  from: SQL
  id: SQL
  label: SQL
  /** Whether a row belongs to a user. */
  isOf: (userId: string) => SQL
  organization: SQL
  /** Rows that fit, by an id or by a part of a name. */
  fits: (text: string, part: string) => SQL
}

/** The pattern of texts that hold a text. */
const holding = (text: string) => `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
const like = (column: SQL, part: string) => sql`${column} ILIKE ${part}`
/** An id, else a part of a name: with both beside each other Postgres would read by no index. */
const idOrName = (id: SQL, text: string, name: SQL) => (isUuid(text) ? sql`${id} = ${text}::uuid` : name)

/** Rows with a user. */
const of = (column: SQL) => (userId: string) => sql`${column} = ${userId}::uuid`
/** The same beside a condition that names few rows. A plain comparison could be read by the index of the user, who has more. */
const ofText = (column: SQL) => (userId: string) => sql`${column} IS NOT DISTINCT FROM ${userId}`
/** Rows that belong to no user. */
const ofNobody = (_userId: string) => sql`false`

const SEARCHED: Record<Exclude<FoundKind, 'model'>, Searched> = {
  call: {
    from: sql`${calls}`,
    id: sql`calls.id`,
    label: sql`concat_ws(' ', coalesce(calls.model_id, calls.tool, calls.action), calls.outcome)`,
    isOf: ofText(sql`calls.user_id`),
    organization: sql`calls.organization_id`,
    // Either by an index of its own; both beside each other could be read by that of the user.
    fits: (text) => (text.startsWith('call_') ? sql`calls.id = ${text}` : sql`calls.request_id = ${text}`),
  },
  response: {
    from: sql`(SELECT organization_id, response_id AS id, user_id FROM ${calls}) AS found`,
    id: sql`found.id`,
    label: sql`found.id`,
    isOf: ofText(sql`found.user_id`),
    organization: sql`found.organization_id`,
    fits: (text) => sql`found.id = ${text}`,
  },
  run: {
    from: sql`${runs}`,
    id: sql`runs.id::text`,
    label: sql`runs.status`,
    isOf: of(sql`runs.user_id`),
    organization: sql`runs.organization_id`,
    fits: (text) => idOrName(sql`runs.id`, text, sql`false`),
  },
  key: {
    from: sql`${apiKeys}`,
    id: sql`api_keys.id`,
    label: sql`api_keys.label`,
    isOf: of(sql`api_keys.user_id`),
    organization: sql`api_keys.organization_id`,
    fits: (text, part) =>
      sql`api_keys.session_id IS NULL AND (starts_with(api_keys.id, ${text}) OR ${like(sql`api_keys.label`, part)})`,
  },
  user: {
    from: sql`${memberships} JOIN ${users} ON users.id = memberships.user_id`,
    id: sql`users.id::text`,
    label: sql`users.name || ' (' || users.email || ')'`,
    isOf: of(sql`memberships.user_id`),
    organization: sql`memberships.organization_id`,
    fits: (text, part) =>
      idOrName(
        sql`memberships.user_id`,
        text,
        sql`(${like(sql`users.name`, part)} OR ${like(sql`users.email`, part)})`,
      ),
  },
  group: named(sql`${groups}`, 'groups', 'name'),
  policy: named(sql`${dlpPolicies}`, 'dlp_policies', 'name', ofNobody, sql`dlp_policies.deleted_at IS NULL`),
  agent: named(sql`${agents}`, 'agents', 'name', of(sql`agents.created_by`), sql`agents.deleted_at IS NULL`),
  integration: named(sql`${integrations}`, 'integrations', 'display_name'),
  connection: {
    ...named(sql`${connections}`, 'connections', 'display_name', of(sql`connections.owner_user_id`)),
    fits: (text, part) =>
      isConnectionId(text) ? sql`connections.id = ${text}` : like(sql`connections.display_name`, part),
  },
}

/** A table whose rows have an id and a name. @param isOf whether a row belongs to a user. @param condition of rows that can be found. */
function named(from: SQL, table: string, name: string, isOf = ofNobody, condition = sql`true`): Searched {
  const column = (of: string) => sql.raw(`${table}.${of}`)
  return {
    from,
    id: sql`${column('id')}::text`,
    label: column(name),
    isOf,
    organization: column('organization_id'),
    fits: (text, part) => sql`${condition} AND ${idOrName(column('id'), text, like(column(name), part))}`,
  }
}

/** Finds what a text names, in reach: calls, responses and runs by their whole id, the others by a part of their name too. */
export async function selectFound(
  { database, organizationId }: OrganizationScope,
  text: string,
  reach: FindReach,
): Promise<Found[]> {
  const part = holding(text)
  const kinds = (Object.keys(SEARCHED) as Array<keyof typeof SEARCHED>).filter(
    (kind) => reach[kind] !== undefined,
  )
  const selects = kinds.map((kind) => {
    const { from, id, label, isOf, organization, fits } = SEARCHED[kind]
    const userId = reach[kind]
    const own = userId == null ? sql`true` : isOf(userId)
    return sql`(SELECT DISTINCT ${kind}::text AS kind, ${id} AS id, ${label} AS label FROM ${from}
      WHERE ${organization} = ${organizationId}::uuid AND ${own} AND ${fits(text, part)} ORDER BY 3, 2 LIMIT ${MOST_OF_A_KIND})`
  })
  if (selects.length === 0) return []
  const { rows } = await database.execute<Found & Record<string, unknown>>(
    sql.join(selects, sql` UNION ALL `),
  )
  return rows.map(({ kind, id, label }) => ({ kind, id, label }))
}

/** Ids of models that hold a text: models belong to no organization. @param among the only ones that may be found; null for all. */
export async function selectModelIds(
  { database }: OrganizationScope,
  text: string,
  among: ReadonlySet<string> | null,
): Promise<string[]> {
  const isUsable = among === null ? undefined : inArray(models.id, [...among])
  const rows = await database
    .select({ id: models.id })
    .from(models)
    .where(and(isNull(models.disabledAt), like(sql`${models.id}`, holding(text)), isUsable))
    .orderBy(models.id)
    .limit(MOST_OF_A_KIND)
  return rows.map(({ id }) => id)
}
