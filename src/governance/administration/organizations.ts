import { notFound } from '../../lib/api-error.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { type Administration, audited, conflict } from './administration.ts'
import {
  insertOrganization,
  type OrganizationRow,
  type OrganizationValues,
  selectOrganization,
  selectOrganizations,
  updateOrganization,
} from './organizations.store.ts'
import { publishRights } from './propagation.ts'

export type { OrganizationRow } from './organizations.store.ts'

/** @throws ApiError `unprocessable` when the slug is taken. */
export async function createOrganization(
  administration: Administration,
  values: OrganizationValues & { name: string; slug: string },
): Promise<OrganizationRow> {
  const firstOfSlug = { limit: 1, after: null }
  const taken = await selectOrganizations(administration.database, null, { slug: values.slug }, firstOfSlug)
  // Asked before the audit record: that one opens a ledger for the organization, which should come to exist.
  if (taken.rows.length > 0) throw conflict(`The slug ${values.slug} is taken.`)
  const organizationId = crypto.randomUUID()
  const { slug, rateLimitPerMinute = null, userRateLimitPerMinute = null, ledgerShards = 1 } = values
  return audited(
    administration,
    {
      organizationId,
      action: 'organization.created',
      resource: `organizations/${organizationId}`,
      detail: {
        slug,
        rate_limit_per_minute: rateLimitPerMinute,
        user_rate_limit_per_minute: userRateLimitPerMinute,
        ledger_shards: ledgerShards,
      },
    },
    () => insertOrganization(administration.database, organizationId, values),
  )
}

/** @param scope the organization an administrator is bound to, or null for one of the deployment. */
export function listOrganizations(
  administration: Administration,
  scope: string | null,
  filter: { slug?: string | undefined },
  page: PageRequest,
): Promise<Page<OrganizationRow>> {
  return selectOrganizations(administration.database, scope, filter, page)
}

/** @throws ApiError `not_found`. */
export async function readOrganization(
  administration: Administration,
  organizationId: string,
): Promise<OrganizationRow> {
  const row = await selectOrganization(administration.database, organizationId)
  if (row === null) throw notFound('Organization', organizationId)
  return row
}

/** Changes name, limits or whether the organization is disabled; its rights are read anew everywhere. */
export async function changeOrganization(
  administration: Administration,
  organizationId: string,
  values: OrganizationValues,
): Promise<OrganizationRow> {
  const row = await audited(
    administration,
    {
      organizationId,
      action: 'organization.updated',
      resource: `organizations/${organizationId}`,
      detail: {
        name_changed: values.name !== undefined,
        rate_limit_per_minute: values.rateLimitPerMinute,
        user_rate_limit_per_minute: values.userRateLimitPerMinute,
        ledger_shards: values.ledgerShards,
        disabled: values.disabled,
      },
    },
    async () => {
      const changed = await updateOrganization(administration.database, organizationId, values)
      if (changed === null) throw notFound('Organization', organizationId)
      return changed
    },
  )
  await publishRights(administration, organizationId, row.epoch)
  return row
}
