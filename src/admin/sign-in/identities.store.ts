import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { entitlements, memberships, setupLinks, users } from '../../../schema/identity.ts'
import { identities } from '../../../schema/identity-providers.ts'
import type { OrganizationScope } from '../../ledger/changes/scoped-statements.store.ts'
import { OPERATOR } from '../../wire/endpoints/permissions.ts'
import { isCurrentProvider } from '../identity-provider.store.ts'
import { type NewSession, startSessionOf } from './sessions.store.ts'
import { isEnabled } from './sign-in-members.store.ts'

/** An account of the organization's provider, and the member that it signs in as. */
export interface Identity {
  userId: string
  issuer: string
  clientId: string
  subject: string
}

/** The user that an account is linked to. */
export async function selectLinkedUser(
  { database, organizationId }: OrganizationScope,
  { issuer, subject }: Pick<Identity, 'issuer' | 'subject'>,
): Promise<string | null> {
  const [row] = await database
    .select({ userId: identities.userId })
    .from(identities)
    .where(
      and(
        eq(identities.organizationId, organizationId),
        eq(identities.issuer, issuer),
        eq(identities.subject, subject),
      ),
    )
  return row?.userId ?? null
}

/** The person with an address in the organization. */
export async function selectUserOfAddress(
  { database, organizationId }: OrganizationScope,
  address: string,
): Promise<string | null> {
  const [row] = await database
    .select({ userId: users.id })
    .from(users)
    .innerJoin(memberships, eq(memberships.userId, users.id))
    .where(
      and(
        eq(users.email, address),
        eq(users.kind, 'person'),
        eq(memberships.organizationId, organizationId),
        isNull(memberships.disabledAt),
      ),
    )
  return row?.userId ?? null
}

/** Unlinks the account of a member. @param isAllowed what has to hold. */
export const deleteIdentity = (
  { database, organizationId }: OrganizationScope,
  userId: string,
  isAllowed: SQL,
) =>
  database
    .delete(identities)
    .where(and(eq(identities.organizationId, organizationId), eq(identities.userId, userId), isAllowed))

/**
 * The condition that a member is no operator: owners choose the provider of their organization, and would enter all others with an
 * account of an operator. An operator signs in with a passkey.
 */
const isNoOperator = (
  organizationId: string,
  userId: string,
): SQL => sql`NOT EXISTS (SELECT 1 FROM ${entitlements} e
  WHERE e.organization_id = ${organizationId}::uuid AND e.user_id = ${userId}::uuid AND e.name = ${OPERATOR})`

/** Parts of the statements below. */
const partsOf = ({ organizationId }: OrganizationScope, identity: Identity, session: NewSession) => {
  const { userId } = identity
  return {
    organization: sql`${organizationId}::uuid`,
    user: sql`${userId}::uuid`,
    at: sql`${session.signedInAt.toISOString()}::timestamptz`,
    mayEnter: sql`${isEnabled({ organizationId, userId })} AND ${isNoOperator(organizationId, userId)}
      AND ${isCurrentProvider(organizationId, identity)}`,
  }
}

/**
 * Stores a session of an account that is linked.
 * @returns whether it still is, its provider is that of the organization, and its member may sign in.
 * @throws the database's unique violation when the round has made a session already; the same holds for the two below.
 */
export function insertLinkedSession(
  scope: OrganizationScope,
  identity: Identity,
  session: NewSession,
): Promise<boolean> {
  const { organization, user, at, mayEnter } = partsOf(scope, identity, session)
  const admitted = sql`admitted AS (
      UPDATE ${identities} SET last_used_at = ${at}
      WHERE organization_id = ${organization} AND user_id = ${user}
        AND issuer = ${identity.issuer} AND subject = ${identity.subject} AND ${mayEnter}
      RETURNING organization_id, user_id
    )`
  return startSessionOf(scope, { userId: identity.userId, method: 'oidc' }, admitted, session)
}

/**
 * Links an account to the member with its address, and stores a session. @returns false also when the account or the member is
 * linked already.
 */
export function linkByAddress(
  scope: OrganizationScope,
  identity: Identity & { address: string },
  session: NewSession,
): Promise<boolean> {
  const { organization, user, at, mayEnter } = partsOf(scope, identity, session)
  const admitted = sql`admitted AS (
      INSERT INTO ${identities} (organization_id, user_id, issuer, subject, last_used_at)
      SELECT ${organization}, id, ${identity.issuer}, ${identity.subject}, ${at} FROM ${users}
      WHERE id = ${user} AND email = ${identity.address} AND kind = 'person' AND ${mayEnter}
      ON CONFLICT DO NOTHING
      RETURNING organization_id, user_id
    )`
  return startSessionOf(scope, { userId: identity.userId, method: 'oidc' }, admitted, session)
}

/**
 * Uses a setup link: links an account to its member, and stores a session.
 * @returns false also when the link was used, or when the account or the member is linked to another.
 */
export function linkBySetupLink(
  scope: OrganizationScope,
  identity: Identity & { linkId: string },
  session: NewSession,
): Promise<boolean> {
  const { issuer, subject } = identity
  const { organization, user, at, mayEnter } = partsOf(scope, identity, session)
  const admitted = sql`admitted AS (
      UPDATE ${setupLinks} SET used_at = now()
      WHERE id = ${identity.linkId} AND organization_id = ${organization} AND user_id = ${user}
        AND used_at IS NULL AND expires_at > ${at} AND ${mayEnter}
        AND NOT EXISTS (SELECT 1 FROM ${identities} WHERE organization_id = ${organization}
          AND user_id = ${user} AND NOT (issuer = ${issuer} AND subject = ${subject}))
        AND NOT EXISTS (SELECT 1 FROM ${identities} WHERE organization_id = ${organization}
          AND issuer = ${issuer} AND subject = ${subject} AND user_id <> ${user})
      RETURNING organization_id, user_id
    ), linked AS (
      INSERT INTO ${identities} (organization_id, user_id, issuer, subject, last_used_at)
      SELECT organization_id, user_id, ${issuer}, ${subject}, ${at} FROM admitted
      ON CONFLICT (organization_id, user_id) DO UPDATE SET last_used_at = EXCLUDED.last_used_at
    )`
  return startSessionOf(scope, { userId: identity.userId, method: 'oidc' }, admitted, session)
}
