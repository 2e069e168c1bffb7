import { and, eq, inArray, isNull } from 'drizzle-orm'
import { apiKeys, groups, memberships } from '../../schema/identity.ts'
import { integrations } from '../../schema/integrations.ts'
import { models } from '../../schema/models.ts'
import type { OrganizationScope } from '../ledger/changes/scoped-statements.store.ts'
import { isUuid } from '../wire/management-fields.ts'

/** Kinds of names in policies and rules: ids of groups, users, keys and models, slugs of integrations. */
export type NamedKind = 'group' | 'user' | 'key' | 'model' | 'integration'

/** The names of each kind that the organization has, of those that are given. */
export type Names = Readonly<Partial<Record<NamedKind, readonly string[]>>>

export async function selectKnownNames(
  { database, organizationId }: OrganizationScope,
  names: Names,
): Promise<Record<NamedKind, Set<string>>> {
  const { group = [], user = [], key = [], model = [], integration = [] } = names
  const [groupIds, userIds] = [group.filter(isUuid), user.filter(isUuid)]
  const isGroup = and(eq(groups.organizationId, organizationId), inArray(groups.id, groupIds))
  const isMember = and(eq(memberships.organizationId, organizationId), inArray(memberships.userId, userIds))
  const isKey = and(eq(apiKeys.organizationId, organizationId), inArray(apiKeys.id, key))
  const isIntegration = and(
    eq(integrations.organizationId, organizationId),
    inArray(integrations.slug, integration),
    isNull(integrations.deletedAt),
  )
  const [knownGroups, members, keys, knownModels, slugs] = await Promise.all([
    groupIds.length > 0 ? database.select({ id: groups.id }).from(groups).where(isGroup) : [],
    userIds.length > 0 ? database.select({ id: memberships.userId }).from(memberships).where(isMember) : [],
    key.length > 0 ? database.select({ id: apiKeys.id }).from(apiKeys).where(isKey) : [],
    // Models belong to the deployment, not to an organization.
    model.length > 0 ? database.select({ id: models.id }).from(models).where(inArray(models.id, model)) : [],
    integration.length > 0
      ? database.select({ id: integrations.slug }).from(integrations).where(isIntegration)
      : [],
  ])
  const setOf = (rows: ReadonlyArray<{ id: string }>) => new Set(rows.map(({ id }) => id))
  return {
    group: setOf(knownGroups),
    user: setOf(members),
    key: setOf(keys),
    model: setOf(knownModels),
    integration: setOf(slugs),
  }
}
