import { and, desc, eq, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { passkeys, sessions } from '../../../schema/identity.ts'
import { textArray } from '../../../schema/sql-values.ts'
import type { OrganizationScope } from '../../ledger/changes/scoped-statements.store.ts'
import { lockMembership } from '../lock-members.store.ts'
import { type NewSession, startSessionOf } from './sessions.store.ts'
import { isEnabled, isOf } from './sign-in-members.store.ts'

export type PasskeyRow = typeof passkeys.$inferSelect

/** A passkey of a member, as it is registered. */
export type NewPasskey = Pick<PasskeyRow, 'name' | 'credentialId' | 'publicKey' | 'counter' | 'transports'>

/** The passkey of an authenticator. It has no organization id: it finds the organization. */
export async function selectPasskeyOfCredential(
  database: Database,
  credentialId: string,
): Promise<PasskeyRow | null> {
  const [row] = await database.select().from(passkeys).where(eq(passkeys.credentialId, credentialId))
  return row ?? null
}

export const selectPasskeys = (
  { database, organizationId }: OrganizationScope,
  userId: string,
): Promise<PasskeyRow[]> =>
  database
    .select()
    .from(passkeys)
    .where(isOf(passkeys, { organizationId, userId }))
    .orderBy(desc(passkeys.createdAt))

/**
 * Stores a session of a passkey, and the authenticator's count of signatures.
 * @returns whether the passkey is still there, and its member may sign in.
 * @throws the database's unique violation when the ceremony has made a session already.
 */
export function insertPasskeySession(
  scope: OrganizationScope,
  { id, userId, counter }: Pick<PasskeyRow, 'id' | 'userId' | 'counter'>,
  session: NewSession,
): Promise<boolean> {
  const { organizationId } = scope
  const admitted = sql`admitted AS (
      UPDATE ${passkeys} SET counter = ${counter}::bigint,
        last_used_at = ${session.signedInAt.toISOString()}::timestamptz
      WHERE id = ${id}::uuid AND organization_id = ${organizationId}::uuid AND user_id = ${userId}::uuid
        AND ${isEnabled({ organizationId, userId })}
      RETURNING organization_id, user_id
    )`
  return startSessionOf(scope, { userId, method: 'passkey' }, admitted, session)
}

/**
 * Stores a passkey that a session registers.
 * @param most how many the user may have.
 * @returns null when the session has ended, or the user has as many. @throws the database's unique violation for a credential that is registered.
 */
export async function insertPasskey(
  scope: OrganizationScope,
  { sessionId, most }: { sessionId: string; most: number },
  passkey: NewPasskey & { userId: string },
): Promise<PasskeyRow | null> {
  const { database, organizationId } = scope
  const member = { organizationId, userId: passkey.userId }
  const inserting = database.execute(sql`
    INSERT INTO ${passkeys} (organization_id, user_id, name, credential_id, public_key, counter, transports)
    SELECT organization_id, user_id, ${passkey.name}, ${passkey.credentialId}, ${passkey.publicKey},
      ${passkey.counter}::bigint, ${textArray(passkey.transports)}
    FROM (SELECT organization_id, user_id FROM ${sessions} WHERE id = ${sessionId}
      AND organization_id IS NOT DISTINCT FROM ${organizationId}::uuid
      AND user_id IS NOT DISTINCT FROM ${passkey.userId}::uuid AND ended_at IS NULL FOR UPDATE) AS open
    WHERE (SELECT count(*) FROM ${passkeys} WHERE ${isOf(passkeys, member)}) < ${most}::int
    RETURNING id`)
  const reading = database
    .select()
    .from(passkeys)
    .where(and(isOf(passkeys, member), eq(passkeys.credentialId, passkey.credentialId)))
  // Read in the same transaction: once it is over, a setup link may remove the passkey.
  const [, { rows }, [row]] = await database.batch([
    lockMembership(scope, passkey.userId),
    inserting,
    reading,
  ])
  return rows.length > 0 ? (row ?? null) : null
}

/** Deletes the passkeys of a member. @param guard must hold as well. */
export const deletePasskeys = ({ database, organizationId }: OrganizationScope, userId: string, guard: SQL) =>
  database.delete(passkeys).where(and(isOf(passkeys, { organizationId, userId }), guard))

/** @returns whether the user had it. */
export async function deletePasskey(
  { database, organizationId }: OrganizationScope,
  userId: string,
  passkeyId: string,
): Promise<boolean> {
  const rows = await database
    .delete(passkeys)
    .where(and(isOf(passkeys, { organizationId, userId }), eq(passkeys.id, passkeyId)))
    .returning({ id: passkeys.id })
  return rows.length > 0
}
