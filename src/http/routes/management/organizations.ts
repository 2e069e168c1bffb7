import type * as z from 'zod'
import { type OrganizationRow, selectOrganizations } from '../../../admin/organizations.store.ts'
import { changeOrganization, createOrganization, readOrganization } from '../../../admin/organizations.ts'
import { reachOf } from '../../../wire/endpoints/permissions.ts'
import type { organizationUpdate } from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { authorOf, missing, sessionOf } from './require-permission.ts'

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

const ADMIN_CHANGES = ['rate_limit_per_minute', 'user_rate_limit_per_minute']
const OWNER_CHANGES = [...ADMIN_CHANGES, 'name']

/** @throws ApiError `forbidden` for a member that the caller's role does not change. */
function checkMembers(allowed: readonly string[], body: object): void {
  const refused = Object.keys(body).filter((name) => !allowed.includes(name))
  if (refused.length === 0) return
  const message = `Your permission organizations.change does not include ${refused.join(', ')}.`
  throw missing('organizations.change', message)
}

export const organizationHandlers: HandlersOf<'organizations'> = {
  'organizations.list': async ({ context, scope, query: { slug, ...paging } }) => {
    const session = sessionOf(context)
    const reachesAll = session === null || reachOf('organizations.read', session.principal) === 'installation'
    const administered = reachesAll ? null : session.principal.organizationId
    return listBody(
      await selectOrganizations(scope.database, administered, { slug }, pageRequest(paging)),
      present,
    )
  },
  'organizations.create': async ({ scope, body: { name, slug, ...limits } }) =>
    present(await createOrganization(scope, { ...valuesOf(limits), name, slug })),
  'organizations.show': async ({ scope }) => present(await readOrganization(scope)),
  'organizations.change': async ({ context, scope, body }) => {
    const author = authorOf(context, 'organizations.change')
    if (author && !author.isOperator) {
      checkMembers(author.role === 'owner' ? OWNER_CHANGES : ADMIN_CHANGES, body)
    }
    return present(await changeOrganization(scope, valuesOf(body)))
  },
}
