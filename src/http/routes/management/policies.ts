import type { VersionRow } from '../../../admin/dlp-policies.store.ts'
import {
  type CurrentPolicy,
  changePolicy,
  createPolicy,
  listPolicies,
  listVersions,
  readPolicy,
  readVersion,
  removePolicy,
} from '../../../admin/dlp-policies.ts'
import { dryRunPolicy, tryPolicy } from '../../../admin/dlp-trials.ts'
import { BUILT_IN_DETECTORS } from '../../../dlp/detectors/registry.ts'
import type { PolicyBody } from '../../../wire/dlp.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './administration.ts'
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

const presentVersion = ({ version, name, enabled, author, createdAt }: VersionRow) => ({
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
  'policies.list': async ({ administration, query }) =>
    listBody(await listPolicies(administration, pageRequest(query)), present),
  'policies.create': async ({ administration, body }) => present(await createPolicy(administration, body)),
  'policies.show': async ({ administration, path }) =>
    present(await readPolicy(administration, path.policyId)),
  'policies.change': async ({ administration, path, body }) =>
    present(await changePolicy(administration, path.policyId, body)),
  'policies.remove': async ({ administration, path }) => {
    await removePolicy(administration, path.policyId)
    return { id: path.policyId, deleted: true }
  },
  'policies.versions': async ({ administration, path, query }) =>
    listBody(await listVersions(administration, path.policyId, pageRequest(query)), presentVersion),
  'policies.version': async ({ administration, path }) => {
    const row = await readVersion(administration, path.policyId, path.version)
    return { ...presentVersion(row), ...(row.body as PolicyBody) }
  },
  'policies.test': ({ administration, body }) => tryPolicy(administration, body),
  'policies.dry-run': async ({ administration, body }) => {
    const { withFindings, ...result } = await dryRunPolicy(administration, body)
    return { ...result, with_findings: withFindings }
  },
}
