import type { ConnectionRow } from './connections.store.ts'

/**
 * Whether a user may connect the account of a connection again, delete it and share it: its owner, and the members of groups
 * with which it is shared to be managed.
 */
export const isManagedBy = (
  { ownerUserId, shares }: Pick<ConnectionRow, 'ownerUserId' | 'shares'>,
  { userId, groupIds }: { userId: string; groupIds: readonly string[] },
): boolean =>
  ownerUserId === userId ||
  shares.some(({ group_id: groupId, permission }) => permission === 'manage' && groupIds.includes(groupId))
