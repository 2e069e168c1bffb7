import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { organizations } from '../../schema/identity.ts'
import { identities, identityProviders } from '../../schema/identity-providers.ts'
import type { OrganizationScope } from '../ledger/changes/scoped-statements.store.ts'
import { lockOrganizationAlone } from './lock-members.store.ts'

export type IdentityProviderRow = typeof identityProviders.$inferSelect

/** Whether the deployment has any, so that a page offers it. */
export async function selectHasProvider(database: Database): Promise<boolean> {
  const rows = await database
    .select({ organizationId: identityProviders.organizationId })
    .from(identityProviders)
    .limit(1)
  return rows.length > 0
}

export async function selectProvider({
  database,
  organizationId,
}: OrganizationScope): Promise<IdentityProviderRow | null> {
  const [row] = await database
    .select()
    .from(identityProviders)
    .where(eq(identityProviders.organizationId, organizationId))
  return row ?? null
}

/** The provider of an enabled organization. It has no organization id: it finds the organization. */
export async function selectProviderOfSlug(
  database: Database,
  slug: string,
): Promise<IdentityProviderRow | null> {
  const [row] = await database
    .select({ provider: identityProviders })
    .from(identityProviders)
    .innerJoin(organizations, eq(organizations.id, identityProviders.organizationId))
    .where(and(eq(organizations.slug, slug), isNull(organizations.disabledAt)))
  return row?.provider ?? null
}

/** The condition that a client of an issuer is the one that the organization has. */
export const isCurrentProvider = (
  organizationId: string,
  { issuer, clientId }: Pick<IdentityProviderRow, 'issuer' | 'clientId'>,
): SQL => sql`EXISTS (SELECT 1 FROM ${identityProviders} WHERE organization_id = ${organizationId}::uuid
  AND issuer = ${issuer} AND client_id = ${clientId})`

/**
 * Stores the provider of an organization in place of another one. Links to accounts of another issuer are removed.
 * @param keepsSecret the secret stays, if issuer and client are those that are stored.
 * @returns null when a kept secret belongs to another issuer or client meanwhile.
 */
export async function replaceProvider(
  scope: OrganizationScope,
  values: Pick<IdentityProviderRow, 'issuer' | 'clientId' | 'sealedClientSecret'>,
  keepsSecret: boolean,
): Promise<IdentityProviderRow | null> {
  const { database, organizationId } = scope
  const { issuer, clientId, sealedClientSecret } = values
  const { sealedClientSecret: stored } = identityProviders
  const isSameClient = and(eq(identityProviders.issuer, issuer), eq(identityProviders.clientId, clientId))
  const storing = database
    .insert(identityProviders)
    .values({ organizationId, ...values })
    .onConflictDoUpdate({
      target: identityProviders.organizationId,
      set: {
        issuer,
        clientId,
        sealedClientSecret: keepsSecret ? sql`${stored}` : sealedClientSecret,
        updatedAt: sql`now()`,
      },
      ...(keepsSecret && isSameClient && { setWhere: isSameClient }),
    })
    .returning()
  const removing = database.delete(identities).where(
    and(
      eq(identities.organizationId, organizationId),
      sql`NOT EXISTS (SELECT 1 FROM ${identityProviders} p WHERE p.organization_id = ${organizationId}::uuid
          AND p.issuer = ${identities.issuer})`,
    ),
  )
  const [, [row]] = await database.batch([lockOrganizationAlone(scope), storing, removing])
  return row ?? null
}

/** Removes the provider of an organization with the links to its accounts. @returns whether there was one. */
export async function deleteProvider(scope: OrganizationScope): Promise<boolean> {
  const { database, organizationId } = scope
  const [, , rows] = await database.batch([
    lockOrganizationAlone(scope),
    database.delete(identities).where(eq(identities.organizationId, organizationId)),
    database
      .delete(identityProviders)
      .where(eq(identityProviders.organizationId, organizationId))
      .returning({ organizationId: identityProviders.organizationId }),
  ])
  return rows.length > 0
}
