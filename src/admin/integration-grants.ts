import { selectIntegration } from '../integrations/catalogue/tool-catalogue.store.ts'
import { type Administration, changeRights } from '../ledger/changes/audited-change.ts'
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
  administration: Administration,
  creation: IntegrationGrantCreation,
): Promise<IntegrationGrantRow> {
  const subject = await checkSubject(administration, creation)
  const { integration, tools = null } = creation
  if (integration === '*' && tools !== null)
    throw invalidRequest('tools: goes with one integration, not with *')
  await checkIntegration(administration, integration)
  const id = crypto.randomUUID()
  const grant = { ...subject, integration, tools }
  const intent = {
    action: 'integration_grant.created',
    resource: `integration-grants/${id}`,
    detail: detailOf(grant),
  }
  return changeRights(administration, intent, () => insertIntegrationGrant(administration, { ...grant, id }))
}

async function checkIntegration(administration: Administration, slug: string): Promise<void> {
  if (slug === '*') return
  const { database, organizationId } = administration
  if ((await selectIntegration(database, organizationId, { slug })) === null)
    throw notFound('Integration', slug)
}

/** @throws ApiError `not_found` for a grant of another organization, too. */
export async function removeIntegrationGrant(administration: Administration, grantId: string): Promise<void> {
  const row = await selectIntegrationGrant(administration, grantId)
  if (row === null) throw notFound('Grant', grantId)
  const intent = {
    action: 'integration_grant.deleted',
    resource: `integration-grants/${grantId}`,
    detail: detailOf(row),
  }
  await changeRights(administration, intent, () => deleteIntegrationGrant(administration, grantId))
}
