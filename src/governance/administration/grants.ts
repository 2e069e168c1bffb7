import { notFound } from '../../lib/api-error.ts'
import type { GrantCreation } from '../../wire/management.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { type Administration, audited } from './administration.ts'
import {
  deleteGrant,
  type GrantRow,
  type GrantSubject,
  insertGrant,
  selectGrant,
  selectGrants,
  selectModelExists,
} from './grants.store.ts'
import { readGroup } from './groups.ts'
import { readMember } from './members.ts'
import { publishRights } from './propagation.ts'

export type { GrantRow } from './grants.store.ts'

/**
 * Lets a subject of the organization use a model, or every model (`*`).
 * @throws ApiError `not_found` for a subject of another organization or an unknown model; `unprocessable` when the
 * grant exists.
 */
export async function createGrant(
  administration: Administration,
  organizationId: string,
  creation: GrantCreation,
): Promise<GrantRow> {
  const subject = await checkSubject(administration, organizationId, creation)
  const modelId = creation.model_id
  if (modelId !== '*' && !(await selectModelExists(administration.database, modelId))) {
    throw notFound('Model', modelId)
  }
  const id = crypto.randomUUID()
  const { row, epoch } = await audited(
    administration,
    {
      organizationId,
      action: 'grant.created',
      resource: `grants/${id}`,
      detail: { subject_type: subject.subjectType, subject_id: subject.subjectId, model_id: modelId },
    },
    () => insertGrant(administration.database, organizationId, { ...subject, id, modelId }),
  )
  await publishRights(administration, organizationId, epoch)
  return row
}

export function listGrants(
  administration: Administration,
  organizationId: string,
  filter: { modelId?: string | undefined },
  page: PageRequest,
): Promise<Page<GrantRow>> {
  return selectGrants(administration.database, organizationId, filter, page)
}

/** @throws ApiError `not_found` for a grant of another organization, too. */
export async function removeGrant(
  administration: Administration,
  organizationId: string,
  grantId: string,
): Promise<void> {
  const row = await selectGrant(administration.database, organizationId, grantId)
  if (row === null) throw notFound('Grant', grantId)
  const epoch = await audited(
    administration,
    {
      organizationId,
      action: 'grant.deleted',
      resource: `grants/${grantId}`,
      detail: { subject_type: row.subjectType, subject_id: row.subjectId, model_id: row.modelId },
    },
    () => deleteGrant(administration.database, organizationId, grantId),
  )
  await publishRights(administration, organizationId, epoch)
}

async function checkSubject(
  administration: Administration,
  organizationId: string,
  creation: GrantCreation,
): Promise<GrantSubject> {
  if (creation.subject_type === 'organization') {
    return { subjectType: 'organization', subjectId: organizationId }
  }
  const { subject_type: subjectType, subject_id: subjectId } = creation
  if (subjectType === 'group') await readGroup(administration, organizationId, subjectId)
  if (subjectType === 'user') await readMember(administration, organizationId, subjectId)
  return { subjectType, subjectId }
}
