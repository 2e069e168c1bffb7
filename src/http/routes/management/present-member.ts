import type { MemberRow } from '../../../admin/members.store.ts'

/** A member as the lists of users and of a group's members return it. */
export const presentMember = (row: MemberRow) => ({
  id: row.userId,
  email: row.email,
  name: row.name,
  kind: row.kind,
  role: row.role,
  rate_limit_per_minute: row.rateLimitPerMinute,
  entitlements: row.entitlements,
  group_ids: row.groupIds,
  disabled_at: row.disabledAt,
  created_at: row.createdAt,
})
