import { type Administration, audited, changeRights, conflict } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import {
  insertOrganization,
  type OrganizationRow,
  type OrganizationValues,
  selectOrganization,
  selectOrganizations,
  updateOrganization,
} from './organizations.store.ts'

/** @throws ApiError `unprocessable` when the slug is taken. */
export async function createOrganization(
  administration: Administration,
  values: OrganizationValues & { name: string; slug: string },
): Promise<OrganizationRow> {
  const firstOfSlug = { limit: 1, after: null }
  const taken = await selectOrganizations(administration.database, null, { slug: values.slug }, firstOfSlug)
  // Checked before the audit record, which creates the organization's ledger.
  if (taken.rows.length > 0) throw conflict(`The slug ${values.slug} is taken.`)
  const organizationId = crypto.randomUUID()
  const { slug, rateLimitPerMinute = null, userRateLimitPerMinute = null, ledgerShards = 1 } = values
  const detail = {
    slug,
    rate_limit_per_minute: rateLimitPerMinute,
    user_rate_limit_per_minute: userRateLimitPerMinute,
    ledger_shards: ledgerShards,
  }
  const resource = `organizations/${organizationId}`
  return audited(administration, { organizationId, action: 'organization.created', resource, detail }, () =>
    insertOrganization(administration.database, organizationId, values),
  )
}

/** @throws ApiError `not_found`. */
export async function readOrganization(administration: Administration): Promise<OrganizationRow> {
  const row = await selectOrganization(administration)
  if (row === null) throw notFound('Organization', administration.organizationId)
  return row
}

/** Changes name, limits or whether the organization is disabled. @throws ApiError `not_found`. */
export async function changeOrganization(
  administration: Administration,
  values: OrganizationValues,
): Promise<OrganizationRow> {
  const { organizationId } = administration
  const detail = {
    name_changed: values.name !== undefined,
    rate_limit_per_minute: values.rateLimitPerMinute,
    user_rate_limit_per_minute: values.userRateLimitPerMinute,
    ledger_shards: values.ledgerShards,
    disabled: values.disabled,
  }
  const resource = `organizations/${organizationId}`
  return changeRights(administration, { action: 'organization.updated', resource, detail }, async () => {
    const row = await updateOrganization(administration, values)
    if (row === null) throw notFound('Organization', organizationId)
    return { result: row, epoch: row.epoch }
  })
}
