import { createToken, digestToken } from '../../identity/secret-token.ts'
import { audited, type ChangeScope, conflict } from '../../ledger/changes/audited-change.ts'
import { type Author, actsAsOwner, checkSetupLink } from '../member-rules.ts'
import { readMember } from '../members.ts'
import { replaceSetupLink } from './setup-links.store.ts'
import { selectIsInUse } from './sign-in-members.store.ts'

/** Time in which a setup link can be used, in milliseconds. */
const SETUP_LINK_MS = 24 * 3_600_000

/**
 * Makes the setup link of a member: its invitation, and its way back after a lost passkey. Earlier links, passkeys and sessions of
 * the member in this organization end.
 * @param author the member that makes it; null for the administration token.
 * @returns the token, which cannot be shown again.
 * @throws ApiError `not_found`; `forbidden` where the author may not; `unprocessable` for a member that is disabled and for a service account.
 */
export async function createSetupLink(
  scope: ChangeScope,
  userId: string,
  author: Author | null,
): Promise<{ token: string; expiresAt: Date }> {
  const member = await readMember(scope, userId)
  if (author !== null) checkSetupLink(author, member, await selectIsInUse(scope, userId))
  if (member.disabledAt !== null) throw conflict(`User ${userId} is disabled.`)
  if (member.kind === 'service') throw conflict(`User ${userId} is a service account, which cannot sign in.`)
  const { id, token } = createToken('hgl')
  const expiresAt = new Date(scope.clock() + SETUP_LINK_MS)
  const detail = { user_id: userId, expires_at: expiresAt }
  await audited(scope, { action: 'setup_link.created', resource: `setup_links/${id}`, detail }, async () => {
    const link = { id, userId, expiresAt, ...digestToken(scope.pepperRing, token) }
    const isForNewMember = author !== null && !actsAsOwner(author)
    const guards = { isForNewMember, isNoOperator: author !== null }
    const isMade = await replaceSetupLink(scope, link, { now: new Date(scope.clock()), ...guards })
    if (!isMade) throw conflict(`User ${userId} has signed in, or become an owner or operator meanwhile.`)
  })
  return { token, expiresAt }
}
