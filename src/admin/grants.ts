import { type ChangeScope, changeRights } from '../ledger/changes/audited-change.ts'
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
export async function createGrant(scope: ChangeScope, creation: GrantCreation): Promise<GrantRow> {
  const subject = await checkSubject(scope, creation)
  const modelId = creation.model_id
  if (modelId !== '*' && !(await selectModelExists(scope.database, modelId))) {
    throw notFound('Model', modelId)
  }
  const id = crypto.randomUUID()
  return changeRights(
    scope,
    { action: 'grant.created', resource: `grants/${id}`, detail: detailOf(subject, modelId) },
    () => insertGrant(scope, { ...subject, id, modelId }),
  )
}

/** @throws ApiError `not_found` for a grant of another organization, too. */
export async function removeGrant(scope: ChangeScope, grantId: string): Promise<void> {
  const row = await selectGrant(scope, grantId)
  if (row === null) throw notFound('Grant', grantId)
  await changeRights(
    scope,
    { action: 'grant.deleted', resource: `grants/${grantId}`, detail: detailOf(row, row.modelId) },
    () => deleteGrant(scope, grantId),
  )
}

type GivenSubject = Pick<GrantCreation, 'subject_type'> & { subject_id?: string }

/** The subject of a grant. @throws ApiError `not_found` for one of another organization, too. */
export async function checkSubject(scope: ChangeScope, creation: GivenSubject): Promise<GrantSubject> {
  if (creation.subject_type === 'organization') {
    return { subjectType: 'organization', subjectId: scope.organizationId }
  }
  const { subject_type: subjectType, subject_id: subjectId = '' } = creation
  if (subjectType === 'group') await readGroup(scope, subjectId)
  if (subjectType === 'user') await readMember(scope, subjectId)
  return { subjectType, subjectId }
}
