import type { PolicyVersionRow } from '../../../admin/dlp-policies.store.ts'
import {
  type CurrentPolicy,
  changePolicy,
  createPolicy,
  listPolicies,
  listPolicyVersions,
  readPolicy,
  readPolicyVersion,
  removePolicy,
} from '../../../admin/dlp-policies.ts'
import { dryRunPolicy, tryPolicy } from '../../../admin/dlp-trials.ts'
import { BUILT_IN_DETECTORS } from '../../../dlp/detectors/registry.ts'
import type { PolicyBody } from '../../../wire/dlp.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

const present = ({ id, name, enabled, version, body, createdAt, updatedAt, staleScope }: CurrentPolicy) => ({
  id,
  name,
  enabled,
  version,
  ...(body as PolicyBody),
  stale_scope: staleScope,
  created_at: createdAt,
  updated_at: updatedAt,
})

const presentVersion = ({ version, name, enabled, author, createdAt }: PolicyVersionRow) => ({
  version,
  name,
  enabled,
  author,
  created_at: createdAt,
})

/** Policies of data-loss prevention, and what they would do. Detectors are the same in every organization. */
export const policyHandlers: HandlersOf<'policies' | 'detectors'> = {
  'detectors.list': async () => ({
    data: BUILT_IN_DETECTORS.map(({ id, category, description, minimumScore }) => ({
      id,
      category,
      description,
      minimum_score: minimumScore,
    })),
    has_more: false,
    next_cursor: null,
  }),
  'policies.list': async ({ scope, query }) =>
    listBody(await listPolicies(scope, pageRequest(query)), present),
  'policies.create': async ({ scope, body }) => present(await createPolicy(scope, body)),
  'policies.show': async ({ scope, path }) => present(await readPolicy(scope, path.policyId)),
  'policies.change': async ({ scope, path, body }) => present(await changePolicy(scope, path.policyId, body)),
  'policies.remove': async ({ scope, path }) => {
    await removePolicy(scope, path.policyId)
    return { id: path.policyId, deleted: true }
  },
  'policies.versions': async ({ scope, path, query }) =>
    listBody(await listPolicyVersions(scope, path.policyId, pageRequest(query)), presentVersion),
  'policies.version': async ({ scope, path }) => {
    const row = await readPolicyVersion(scope, path.policyId, path.version)
    return { ...presentVersion(row), ...(row.body as PolicyBody) }
  },
  'policies.test': ({ scope, body }) => tryPolicy(scope, body),
  'policies.dry-run': async ({ scope, body }) => {
    const { withFindings, ...result } = await dryRunPolicy(scope, body)
    return { ...result, with_findings: withFindings }
  },
}
