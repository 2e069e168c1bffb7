import { ApiError, notFound } from '../../lib/api-error.ts'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import { type PolicyBody, type PolicyCreation, type PolicyUpdate, policyBody } from '../../wire/dlp.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { type PolicyIssue, policyIssues } from '../dlp/policy/policy-check.ts'
import { type Administration, audited, conflict, type Intent } from './administration.ts'
import {
  deletePolicy,
  insertPolicy,
  type PolicyRow,
  type PolicyState,
  selectKnownScope,
  selectPolicies,
  selectPolicy,
  selectPolicyTotals,
  selectVersion,
  selectVersions,
  updatePolicy,
  type VersionRow,
} from './dlp-policies.store.ts'
import { publishRights } from './propagation.ts'

export type { VersionRow } from './dlp-policies.store.ts'

/** A policy, with the ids in its scope that no longer name anything. Where nothing else is named it holds for nobody. */
export interface CurrentPolicy extends PolicyRow {
  staleScope: string[]
}

/** Every isolate that serves an organization holds all of its policies, so there is an end to them. */
const MOST_POLICIES = 100
/** Characters of JSON (NFKC) that all policies of an organization have together; a term takes 14 bytes for each. */
const LARGEST_TOTAL = 1_000_000

/**
 * @throws ApiError `invalid_request` for a policy that cannot be enforced as it stands; `not_found` for a group, user or
 * model in its scope that the organization does not have; `unprocessable` for a taken name or one policy too many.
 */
export async function createPolicy(
  administration: Administration,
  organizationId: string,
  { name, enabled, ...members }: PolicyCreation,
): Promise<CurrentPolicy> {
  const body = checkBody(members)
  const policyId = crypto.randomUUID()
  await checkScope(administration, organizationId, body.scope)
  await checkTotals(administration, organizationId, policyId, body)
  const state: PolicyState = { name, enabled, body, author: authorOf(administration) }
  const epoch = await audited(
    administration,
    intentOf('dlp_policy.created', organizationId, { policyId, version: 1 }, state),
    () => insertPolicy(administration.database, organizationId, policyId, state),
  )
  await publishRights(administration, organizationId, epoch)
  return readPolicy(administration, organizationId, policyId)
}

export async function listPolicies(
  administration: Administration,
  organizationId: string,
  page: PageRequest,
): Promise<Page<CurrentPolicy>> {
  const { rows, ...more } = await selectPolicies(administration.database, organizationId, page)
  return { ...more, rows: await withStaleScope(administration, organizationId, rows) }
}

/** @throws ApiError `not_found` for a policy of another organization and a deleted one, too. */
export async function readPolicy(
  administration: Administration,
  organizationId: string,
  policyId: string,
): Promise<CurrentPolicy> {
  const row = await selectPolicy(administration.database, organizationId, policyId)
  const [policy] = await withStaleScope(administration, organizationId, row === null ? [] : [row])
  if (policy === undefined) throw notFound('Policy', policyId)
  return policy
}

/**
 * Makes the next version of a policy; members left out stay as they are in the version that is changed. What is not
 * given is not checked again, so that a policy that can no longer be enforced can still be disabled; but none is
 * enabled with a scope that names what is gone.
 * @throws ApiError as `createPolicy`; `unprocessable` when that version is not the current one any more.
 */
export async function changePolicy(
  administration: Administration,
  organizationId: string,
  policyId: string,
  { version, name, enabled, ...members }: PolicyUpdate,
): Promise<CurrentPolicy> {
  const before = await readPolicy(administration, organizationId, policyId)
  if (before.version !== version) throw overtaken(` (its version is ${before.version})`)
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  const body = given.length === 0 ? before.body : mergedBody(before.body, given)
  const enables = enabled === true && !before.enabled
  const scope = members.scope ?? (enables ? scopeOf(before) : {})
  await checkScope(administration, organizationId, scope)
  await checkTotals(administration, organizationId, policyId, body)
  const author = authorOf(administration)
  const state: PolicyState = { name: name ?? before.name, enabled: enabled ?? before.enabled, body, author }
  const next = { policyId, version: version + 1 }
  const epoch = await audited(
    administration,
    intentOf('dlp_policy.updated', organizationId, next, {
      ...state,
      changed: given.map(([member]) => member),
    }),
    async () => {
      const at = { policyId, version }
      const raised = await updatePolicy(administration.database, organizationId, at, state)
      if (raised === null) throw overtaken('')
      return raised
    },
  )
  await publishRights(administration, organizationId, epoch)
  return readPolicy(administration, organizationId, policyId)
}

/** Takes a policy out of use. Its versions can be read for ever. @throws ApiError `not_found`. */
export async function removePolicy(
  administration: Administration,
  organizationId: string,
  policyId: string,
): Promise<void> {
  const { name, version } = await readPolicy(administration, organizationId, policyId)
  const epoch = await audited(
    administration,
    {
      organizationId,
      action: 'dlp_policy.deleted',
      resource: `policies/${policyId}`,
      detail: { name, version },
    },
    async () => {
      const raised = await deletePolicy(administration.database, organizationId, policyId)
      if (raised === null) throw notFound('Policy', policyId)
      return raised
    },
  )
  await publishRights(administration, organizationId, epoch)
}

/** Versions without what they say, newest first, of a deleted policy as well. @throws ApiError `not_found`. */
export async function listVersions(
  administration: Administration,
  organizationId: string,
  policyId: string,
  page: PageRequest,
): Promise<Page<VersionRow>> {
  const { database } = administration
  const first = await selectVersion(database, organizationId, policyId, 1)
  if (first === null) throw notFound('Policy', policyId)
  return selectVersions(database, organizationId, policyId, page)
}

/** @throws ApiError `not_found`. */
export async function readVersion(
  administration: Administration,
  organizationId: string,
  policyId: string,
  version: number,
): Promise<VersionRow & { body: unknown }> {
  const row = await selectVersion(administration.database, organizationId, policyId, version)
  if (row === null) throw notFound('Policy version', `${policyId}@${version}`)
  return row
}

/**
 * Checks that a policy of the right shape also means something here.
 * @throws ApiError `invalid_request` naming every part that does not.
 */
export function checkBody(body: PolicyBody): PolicyBody {
  const issues = policyIssues(body)
  if (issues.length > 0) throw invalidBody(issues)
  return body
}

/** What is stored is checked together with what is new: the one may speak of the other. */
function mergedBody(stored: unknown, given: Array<[string, unknown]>): PolicyBody {
  const merged = policyBody.safeParse({ ...(stored as object), ...Object.fromEntries(given) })
  if (merged.success) return checkBody(merged.data)
  throw invalidBody(
    merged.error.issues.map(({ path, message }) => ({
      path: path.map(String).join('.') || 'body',
      reason: message,
    })),
  )
}

function invalidBody(issues: PolicyIssue[]): ApiError {
  const message = issues.map(({ path, reason }) => `${path}: ${reason}`).join('; ')
  return new ApiError('invalid_request', message, { code: 'invalid_body', details: { issues } })
}

const authorOf = ({ actor }: Administration) => actor.administrator ?? actor.userId ?? 'unknown'

const overtaken = (detail: string) =>
  conflict(`Somebody changed the policy at the same time${detail}; look at it again.`)

/** Terms and patterns can be secrets themselves, so the record ties itself to the version by a digest of what it says. */
const intentOf = (
  action: string,
  organizationId: string,
  { policyId, version }: { policyId: string; version: number },
  { name, enabled, body, changed }: PolicyState & { changed?: string[] },
): Intent => ({
  organizationId,
  action,
  resource: `policies/${policyId}`,
  detail: { name, version, enabled, changed, body_sha256: sha256Hex(canonicalJson(body)) },
})

type Scope = PolicyBody['scope']
const scopeOnly = policyBody.pick({ scope: true }).loose()

/** What a policy that was stored is scoped to. One that cannot be read fits nobody: its calls are refused (`loadPolicies`). */
function scopeOf({ body }: Pick<PolicyRow, 'body'>): Scope {
  const parsed = scopeOnly.safeParse(body)
  return parsed.success ? parsed.data.scope : {}
}

/** The ids of scopes that name nothing in the organization, each with what it should name. */
async function missingFrom(administration: Administration, organizationId: string, scopes: Scope[]) {
  const named = [
    ['Group', [...new Set(scopes.flatMap((scope) => scope.group_ids ?? []))]],
    ['User', [...new Set(scopes.flatMap((scope) => scope.user_ids ?? []))]],
    ['Model', [...new Set(scopes.flatMap((scope) => scope.model_ids ?? []))]],
  ] as const
  const [[, groupIds], [, userIds], [, modelIds]] = named
  const found = await selectKnownScope(administration.database, organizationId, {
    groupIds,
    userIds,
    modelIds,
  })
  return named.flatMap(([entity, ids]) => ids.filter((id) => !found.has(id)).map((id) => ({ entity, id })))
}

async function checkScope(administration: Administration, organizationId: string, scope: Scope) {
  const [missing] = await missingFrom(administration, organizationId, [scope])
  if (missing !== undefined) throw notFound(missing.entity, missing.id)
}

async function withStaleScope(
  administration: Administration,
  organizationId: string,
  rows: PolicyRow[],
): Promise<CurrentPolicy[]> {
  const missing = await missingFrom(administration, organizationId, rows.map(scopeOf))
  return rows.map((row) => {
    const { group_ids: groups = [], user_ids: users = [], model_ids: models = [] } = scopeOf(row)
    const ids = new Set([...groups, ...users, ...models])
    return { ...row, staleScope: missing.filter(({ id }) => ids.has(id)).map(({ id }) => id) }
  })
}

/** Two changes at once can get past this by one policy each, which nothing depends on. */
async function checkTotals(
  administration: Administration,
  organizationId: string,
  policyId: string,
  body: unknown,
): Promise<void> {
  const others = await selectPolicyTotals(administration.database, organizationId, policyId)
  if (others.count >= MOST_POLICIES) {
    throw conflict(`An organization has at most ${MOST_POLICIES} policies.`)
  }
  if (others.length + JSON.stringify(body).normalize('NFKC').length > LARGEST_TOTAL) {
    throw conflict(`The policies of an organization have at most ${LARGEST_TOTAL} characters together.`)
  }
}
