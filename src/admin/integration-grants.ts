import { selectIntegration } from '../integrations/catalogue/tool-catalogue.store.ts'
import { type ChangeScope, changeRights } from '../ledger/changes/audited-change.ts'
import { invalidRequest, notFound } from '../lib/api-error.ts'
import type { IntegrationGrantCreation } from '../wire/integrations.ts'
import { checkSubject } from './grants.ts'
import {
  deleteIntegrationGrant,
  type IntegrationGrantRow,
  insertIntegrationGrant,
  selectIntegrationGrant,
} from './integration-grants.store.ts'

const detailOf = ({
  subjectType,
  subjectId,
  integration,
  tools,
}: Omit<IntegrationGrantRow, 'id' | 'organizationId' | 'createdAt'>) => ({
  subject_type: subjectType,
  subject_id: subjectId,
  integration,
  tools,
})

/**
 * Lets a subject of the organization use an integration, or some of its tools, or every integration (`*`).
 * @throws ApiError `not_found` for a subject of another organization or an unknown integration; `unprocessable` when the
 * subject has a grant on it.
 */
export async function createIntegrationGrant(
  scope: ChangeScope,
  creation: IntegrationGrantCreation,
): Promise<IntegrationGrantRow> {
  const subject = await checkSubject(scope, creation)
  const { integration, tools = null } = creation
  if (integration === '*' && tools !== null)
    throw invalidRequest('tools: goes with one integration, not with *')
  await checkIntegration(scope, integration)
  const id = crypto.randomUUID()
  const grant = { ...subject, integration, tools }
  const intent = {
    action: 'integration_grant.created',
    resource: `integration-grants/${id}`,
    detail: detailOf(grant),
  }
  return changeRights(scope, intent, () => insertIntegrationGrant(scope, { ...grant, id }))
}

async function checkIntegration(scope: ChangeScope, slug: string): Promise<void> {
  if (slug === '*') return
  const { database, organizationId } = scope
  if ((await selectIntegration(database, organizationId, { slug })) === null)
    throw notFound('Integration', slug)
}

/** @throws ApiError `not_found` for a grant of another organization, too. */
export async function removeIntegrationGrant(scope: ChangeScope, grantId: string): Promise<void> {
  const row = await selectIntegrationGrant(scope, grantId)
  if (row === null) throw notFound('Grant', grantId)
  const intent = {
    action: 'integration_grant.deleted',
    resource: `integration-grants/${grantId}`,
    detail: detailOf(row),
  }
  await changeRights(scope, intent, () => deleteIntegrationGrant(scope, grantId))
}
