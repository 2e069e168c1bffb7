import { type Administration, changeRights } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import type { GrantCreation } from '../wire/management.ts'
import {
  deleteGrant,
  type GrantRow,
  type GrantSubject,
  insertGrant,
  selectGrant,
  selectModelExists,
} from './grants.store.ts'
import { readGroup } from './groups.ts'
import { readMember } from './members.ts'

const detailOf = ({ subjectType, subjectId }: GrantSubject, modelId: string) => ({
  subject_type: subjectType,
  subject_id: subjectId,
  model_id: modelId,
})

/**
 * Lets a subject of the organization use a model, or every model (`*`).
 * @throws ApiError `not_found` for a subject of another organization or an unknown model; `unprocessable` when the
 * grant exists.
 */
export async function createGrant(
  administration: Administration,
  creation: GrantCreation,
): Promise<GrantRow> {
  const subject = await checkSubject(administration, creation)
  const modelId = creation.model_id
  if (modelId !== '*' && !(await selectModelExists(administration.database, modelId))) {
    throw notFound('Model', modelId)
  }
  const id = crypto.randomUUID()
  return changeRights(
    administration,
    { action: 'grant.created', resource: `grants/${id}`, detail: detailOf(subject, modelId) },
    () => insertGrant(administration, { ...subject, id, modelId }),
  )
}

/** @throws ApiError `not_found` for a grant of another organization, too. */
export async function removeGrant(administration: Administration, grantId: string): Promise<void> {
  const row = await selectGrant(administration, grantId)
  if (row === null) throw notFound('Grant', grantId)
  await changeRights(
    administration,
    { action: 'grant.deleted', resource: `grants/${grantId}`, detail: detailOf(row, row.modelId) },
    () => deleteGrant(administration, grantId),
  )
}

type GivenSubject = Pick<GrantCreation, 'subject_type'> & { subject_id?: string }

/** The subject of a grant. @throws ApiError `not_found` for one of another organization, too. */
export async function checkSubject(
  administration: Administration,
  creation: GivenSubject,
): Promise<GrantSubject> {
  if (creation.subject_type === 'organization') {
    return { subjectType: 'organization', subjectId: administration.organizationId }
  }
  const { subject_type: subjectType, subject_id: subjectId = '' } = creation
  if (subjectType === 'group') await readGroup(administration, subjectId)
  if (subjectType === 'user') await readMember(administration, subjectId)
  return { subjectType, subjectId }
}
