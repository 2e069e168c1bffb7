import { audited, type ChangeScope, changeRights, conflict } from '../ledger/changes/audited-change.ts'
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
  scope: ChangeScope,
  values: OrganizationValues & { name: string; slug: string },
): Promise<OrganizationRow> {
  const firstOfSlug = { limit: 1, after: null }
  const taken = await selectOrganizations(scope.database, null, { slug: values.slug }, firstOfSlug)
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
  return audited(scope, { organizationId, action: 'organization.created', resource, detail }, () =>
    insertOrganization(scope.database, organizationId, values),
  )
}

/** @throws ApiError `not_found`. */
export async function readOrganization(scope: ChangeScope): Promise<OrganizationRow> {
  const row = await selectOrganization(scope)
  if (row === null) throw notFound('Organization', scope.organizationId)
  return row
}

/** Changes name, limits or whether the organization is disabled. @throws ApiError `not_found`. */
export async function changeOrganization(
  scope: ChangeScope,
  values: OrganizationValues,
): Promise<OrganizationRow> {
  const { organizationId } = scope
  const detail = {
    name_changed: values.name !== undefined,
    rate_limit_per_minute: values.rateLimitPerMinute,
    user_rate_limit_per_minute: values.userRateLimitPerMinute,
    ledger_shards: values.ledgerShards,
    disabled: values.disabled,
  }
  const resource = `organizations/${organizationId}`
  return changeRights(scope, { action: 'organization.updated', resource, detail }, async () => {
    const row = await updateOrganization(scope, values)
    if (row === null) throw notFound('Organization', organizationId)
    return { result: row, epoch: row.epoch }
  })
}
