import { and, asc, eq, exists, gt, inArray, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { groups, users } from '../../schema/identity.ts'
import { grants, modelRoutes, models, providers } from '../../schema/models.ts'
import { type OrganizationScope, toPage } from '../ledger/changes/scoped-statements.store.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import { appliesTo, type GrantedMember, type GrantSubject } from './grants.store.ts'

/** Grants that are read of one model: a list of more names says nothing. */
const MOST_GRANTS = 20

/** A right to use a model, with the name of who has it. */
export interface NamedGrant extends GrantSubject {
  id: string
  /** A model id, or `*`. */
  modelId: string
  /** Null for an organization and a role. */
  name: string | null
}

type GrantedModelRow = typeof models.$inferSelect & { grants: NamedGrant[] }

/**
 * Models that calls of an organization can reach, in order of id, each with the rights to use it.
 * @param member keeps the models that it may use, and the rights that apply to it.
 */
export async function selectOrganizationModels(
  { database, organizationId }: OrganizationScope,
  member: GrantedMember | undefined,
  page: PageRequest,
): Promise<Page<GrantedModelRow>> {
  const isAfter = page.after === null ? undefined : gt(models.id, page.after.id)
  const isGranted = member && exists(grantsOfModel(database, organizationId, member))
  const rows = await database
    .select()
    .from(models)
    .where(and(isNull(models.disabledAt), isAfter, exists(openRoutes(database, organizationId)), isGranted))
    .orderBy(asc(models.id))
    .limit(page.limit + 1)
  const cut = toPage(rows, page, ({ id }) => ({ at: 0, id }))
  const ids = cut.rows.map(({ id }) => id)
  const named = await selectNamedGrants({ database, organizationId }, member, [...ids, '*'])
  const grantsOf = (id: string) => named.filter(({ modelId }) => modelId === id || modelId === '*')
  return { rows: cut.rows.map((row) => ({ ...row, grants: grantsOf(row.id) })), next: cut.next }
}

/** The routes of a model whose providers serve an organization. */
const openRoutes = (database: Database, organizationId: string) =>
  database
    .select({ one: sql`1` })
    .from(modelRoutes)
    .innerJoin(providers, eq(providers.id, modelRoutes.providerId))
    .where(
      and(
        eq(modelRoutes.modelId, models.id),
        isNull(providers.disabledAt),
        or(isNull(providers.organizationId), eq(providers.organizationId, organizationId)),
      ),
    )

const grantsOfModel = (database: Database, organizationId: string, member: GrantedMember) =>
  database
    .select({ one: sql`1` })
    .from(grants)
    .where(
      and(
        eq(grants.organizationId, organizationId),
        or(eq(grants.modelId, models.id), eq(grants.modelId, '*')),
        appliesTo(member),
      ),
    )

/** The first grants of each model, by subject. */
async function selectNamedGrants(
  { database, organizationId }: OrganizationScope,
  member: GrantedMember | undefined,
  modelIds: readonly string[],
): Promise<NamedGrant[]> {
  const place = sql<number>`row_number() OVER (PARTITION BY ${grants.modelId} ORDER BY ${grants.subjectType}, ${grants.subjectId})`
  const numbered = database
    .select({
      id: grants.id,
      subjectType: grants.subjectType,
      subjectId: grants.subjectId,
      modelId: grants.modelId,
      place: place.as('place'),
    })
    .from(grants)
    .where(
      and(
        eq(grants.organizationId, organizationId),
        inArray(grants.modelId, [...modelIds]),
        appliesTo(member),
      ),
    )
    .as('numbered')
  return database
    .select({
      id: numbered.id,
      subjectType: numbered.subjectType,
      subjectId: numbered.subjectId,
      modelId: numbered.modelId,
      name: nameOf(organizationId, numbered.subjectType, numbered.subjectId),
    })
    .from(numbered)
    .where(sql`${numbered.place} <= ${MOST_GRANTS}`)
    .orderBy(asc(numbered.modelId), asc(numbered.place))
}

/** The name of a group or a user that a grant names. Ids in grants are texts, and those of roles are no uuids. */
const nameOf = (organizationId: string, type: unknown, id: unknown): SQL<string | null> => sql`CASE ${type}
  WHEN 'group' THEN (SELECT name FROM ${groups} WHERE ${groups.id} = (${id})::uuid AND ${groups.organizationId} = ${organizationId}::uuid)
  WHEN 'user' THEN (SELECT name FROM ${users} WHERE ${users.id} = (${id})::uuid)
END`
