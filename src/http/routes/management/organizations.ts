import type * as z from 'zod'
import { type OrganizationRow, selectOrganizations } from '../../../admin/organizations.store.ts'
import { changeOrganization, createOrganization, readOrganization } from '../../../admin/organizations.ts'
import type { organizationUpdate } from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

const present = (row: OrganizationRow) => ({
  id: row.id,
  name: row.name,
  slug: row.slug,
  rate_limit_per_minute: row.rateLimitPerMinute,
  user_rate_limit_per_minute: row.userRateLimitPerMinute,
  ledger_shards: row.ledgerShards,
  disabled_at: row.disabledAt,
  created_at: row.createdAt,
})

const valuesOf = (body: z.infer<typeof organizationUpdate>) => ({
  name: body.name,
  rateLimitPerMinute: body.rate_limit_per_minute,
  userRateLimitPerMinute: body.user_rate_limit_per_minute,
  ledgerShards: body.ledger_shards,
  disabled: body.disabled,
})

export const organizationHandlers: HandlersOf<'organizations'> = {
  'organizations.list': async ({ context, scope, query: { slug, ...paging } }) => {
    const administered = context.get('administrator').organizationId
    return listBody(
      await selectOrganizations(scope.database, administered, { slug }, pageRequest(paging)),
      present,
    )
  },
  'organizations.create': async ({ scope, body: { name, slug, ...limits } }) =>
    present(await createOrganization(scope, { ...valuesOf(limits), name, slug })),
  'organizations.show': async ({ scope }) => present(await readOrganization(scope)),
  'organizations.change': async ({ scope, body }) => present(await changeOrganization(scope, valuesOf(body))),
}
