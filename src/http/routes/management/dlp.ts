import { Hono } from 'hono'
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
import { policyCreation, policyDryRun, policyTrial, policyUpdate } from '../../../wire/dlp.ts'
import { noQuery, pageQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query, unknownId } from '../../validated-request.ts'
import { changeScope, pageRequest, pathId } from './request.ts'

const POLICIES = '/organizations/:organizationId/dlp/policies'
const POLICY = '/organizations/:organizationId/dlp/policies/:policyId'
const VERSIONS = '/organizations/:organizationId/dlp/policies/:policyId/versions'
const VERSION = '/organizations/:organizationId/dlp/policies/:policyId/versions/:version'
const TEST = '/organizations/:organizationId/dlp/test'
const DRY_RUN = '/organizations/:organizationId/dlp/dry-run'

const present = ({ id, name, enabled, version, body, createdAt, updatedAt, staleScope }: CurrentPolicy) => ({
  id,
  name,
  enabled,
  version,
  ...(body as object),
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
export const dlpRoutes = new Hono<AppEnv>()
  .get('/dlp/detectors', query(noQuery), (context) =>
    context.json({
      data: BUILT_IN_DETECTORS.map(({ id, category, description, minimumScore }) => ({
        id,
        category,
        description,
        minimum_score: minimumScore,
      })),
      has_more: false,
      next_cursor: null,
    }),
  )
  .get(POLICIES, query(pageQuery), async (context) => {
    const page = pageRequest(context.req.valid('query'))
    return context.json(listBody(await listPolicies(changeScope(context), page), present))
  })
  .post(POLICIES, query(noQuery), jsonBody(policyCreation), async (context) => {
    const row = await createPolicy(changeScope(context), context.req.valid('json'))
    return context.json(present(row), 201)
  })
  .get(POLICY, query(noQuery), async (context) => {
    const id = pathId(context, 'Policy')
    return context.json(present(await readPolicy(changeScope(context), id)))
  })
  .put(POLICY, query(noQuery), jsonBody(policyUpdate), async (context) => {
    const id = pathId(context, 'Policy')
    const row = await changePolicy(changeScope(context), id, context.req.valid('json'))
    return context.json(present(row))
  })
  .delete(POLICY, query(noQuery), async (context) => {
    const id = pathId(context, 'Policy')
    await removePolicy(changeScope(context), id)
    return context.json({ id, deleted: true })
  })
  .get(VERSIONS, query(pageQuery), async (context) => {
    const id = pathId(context, 'Policy')
    const page = pageRequest(context.req.valid('query'))
    return context.json(listBody(await listPolicyVersions(changeScope(context), id, page), presentVersion))
  })
  .get(VERSION, query(noQuery), async (context) => {
    const id = pathId(context, 'Policy')
    const version = versionParameter(context.req.param('version'))
    const row = await readPolicyVersion(changeScope(context), id, version)
    return context.json({ ...presentVersion(row), ...(row.body as object) })
  })
  .post(TEST, query(noQuery), jsonBody(policyTrial), async (context) => {
    const result = await tryPolicy(changeScope(context), context.req.valid('json'))
    context.header('cache-control', 'no-store')
    return context.json(result)
  })
  .post(DRY_RUN, query(noQuery), jsonBody(policyDryRun), async (context) => {
    const { withFindings, ...result } = await dryRunPolicy(changeScope(context), context.req.valid('json'))
    return context.json({ ...result, with_findings: withFindings })
  })

/** Parses a version: from 1 to the largest integer of Postgres. */
function versionParameter(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw unknownId('Policy version', text)
  return Number(text)
}
