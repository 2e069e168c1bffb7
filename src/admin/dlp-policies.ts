import { policyIssues } from '../dlp/policy/policy-check.ts'
import { type ChangeScope, changeRights, conflict, type Intent } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { sha256Hex } from '../lib/crypto.ts'
import { type PolicyBody, type PolicyCreation, type PolicyUpdate, policyBody } from '../wire/dlp.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import {
  deletePolicy,
  insertPolicy,
  type PolicyRow,
  type PolicyState,
  type PolicyVersionRow,
  selectPolicies,
  selectPolicy,
  selectPolicyTotals,
  selectPolicyVersion,
  selectPolicyVersions,
  updatePolicy,
} from './dlp-policies.store.ts'
import type { NamedKind } from './known-names.store.ts'
import { type NamedAt, requireKnown, unknownNames, unprocessableBody } from './known-names.ts'

/** A policy, with the ids in its scope that no longer name anything. A scope of nothing else fits no call. */
export interface CurrentPolicy extends PolicyRow {
  staleScope: string[]
}

/** Bounded, because every isolate that serves an organization holds all of its policies. */
const MOST_POLICIES = 100
/** Characters of JSON (NFKC) of all policies of an organization; in a compiled term each takes 14 bytes. */
const LARGEST_TOTAL = 1_000_000

/**
 * Creates a policy.
 * @throws ApiError `unprocessable` for a policy that cannot be enforced, or whose scope has a name that is unknown in the
 * organization; `unprocessable` for a taken name or when the organization has the maximum number of policies.
 */
export async function createPolicy(
  scope: ChangeScope,
  { name, enabled, ...members }: PolicyCreation,
): Promise<CurrentPolicy> {
  const body = checkBody(members)
  const policyId = crypto.randomUUID()
  await checkPolicyScope(scope, body.scope)
  await checkTotals(scope, policyId, body)
  const state: PolicyState = { name, enabled, body, author: authorOf(scope) }
  const intent = intentOf('dlp_policy.created', { policyId, version: 1 }, state)
  await changeRights(scope, intent, () => insertPolicy(scope, policyId, state))
  return readPolicy(scope, policyId)
}

export async function listPolicies(scope: ChangeScope, page: PageRequest): Promise<Page<CurrentPolicy>> {
  const { rows, ...more } = await selectPolicies(scope, page)
  return { ...more, rows: await withStaleNames(scope, rows) }
}

/** @throws ApiError `not_found` for a policy of another organization and a deleted one, too. */
export async function readPolicy(scope: ChangeScope, policyId: string): Promise<CurrentPolicy> {
  const row = await selectPolicy(scope, policyId)
  const [policy] = await withStaleNames(scope, row === null ? [] : [row])
  if (policy === undefined) throw notFound('Policy', policyId)
  return policy
}

/**
 * Makes the next version of a policy; members left out keep their value of the version that is changed. They are not
 * checked again, so that a policy that can no longer be enforced can still be disabled. Enabling checks the scope.
 * @throws ApiError as `createPolicy`; `unprocessable` when that version is not the current one any more.
 */
export async function changePolicy(
  scope: ChangeScope,
  policyId: string,
  { version, name, enabled, ...members }: PolicyUpdate,
): Promise<CurrentPolicy> {
  const before = await readPolicy(scope, policyId)
  if (before.version !== version) throw overtaken(` (its version is ${before.version})`)
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  const body = given.length === 0 ? before.body : mergedBody(before.body, given)
  const enables = enabled === true && !before.enabled
  const policyScope = members.scope ?? (enables ? policyScopeOf(before) : {})
  await checkPolicyScope(scope, policyScope)
  await checkTotals(scope, policyId, body)
  const author = authorOf(scope)
  const state: PolicyState = { name: name ?? before.name, enabled: enabled ?? before.enabled, body, author }
  const next = { policyId, version: version + 1 }
  const changed = given.map(([member]) => member)
  await changeRights(scope, intentOf('dlp_policy.updated', next, { ...state, changed }), async () => {
    const updated = await updatePolicy(scope, { policyId, version }, state)
    if (updated.result.length === 0) throw overtaken('')
    return updated
  })
  return readPolicy(scope, policyId)
}

/** Takes a policy out of use. Its versions stay readable. @throws ApiError `not_found`. */
export async function removePolicy(scope: ChangeScope, policyId: string): Promise<void> {
  const { name, version } = await readPolicy(scope, policyId)
  await changeRights(
    scope,
    { action: 'dlp_policy.deleted', resource: `policies/${policyId}`, detail: { name, version } },
    async () => {
      const deleted = await deletePolicy(scope, policyId)
      if (deleted.result.length === 0) throw notFound('Policy', policyId)
      return deleted
    },
  )
}

/** Versions without their bodies, newest first, of a deleted policy as well. @throws ApiError `not_found`. */
export async function listPolicyVersions(
  scope: ChangeScope,
  policyId: string,
  page: PageRequest,
): Promise<Page<PolicyVersionRow>> {
  const first = await selectPolicyVersion(scope, policyId, 1)
  if (first === null) throw notFound('Policy', policyId)
  return selectPolicyVersions(scope, policyId, page)
}

/** @throws ApiError `not_found`. */
export async function readPolicyVersion(
  scope: ChangeScope,
  policyId: string,
  version: number,
): Promise<PolicyVersionRow & { body: unknown }> {
  const row = await selectPolicyVersion(scope, policyId, version)
  if (row === null) throw notFound('Policy version', `${policyId}@${version}`)
  return row
}

/**
 * Checks that a policy of the right shape can be enforced.
 * @throws ApiError `unprocessable` naming every part that cannot.
 */
export function checkBody(body: PolicyBody): PolicyBody {
  const issues = policyIssues(body)
  if (issues.length > 0) throw unprocessableBody(issues)
  return body
}

/** Stored and new members are checked together: rules may name patterns that the change does not give. */
function mergedBody(stored: unknown, given: Array<[string, unknown]>): PolicyBody {
  const merged = policyBody.safeParse({ ...(stored as object), ...Object.fromEntries(given) })
  if (merged.success) return checkBody(merged.data)
  throw unprocessableBody(
    merged.error.issues.map(({ path, message }) => ({
      path: path.map(String).join('.') || 'body',
      reason: message,
    })),
  )
}

const authorOf = ({ actor }: ChangeScope) => actor.administrator ?? actor.userId ?? 'unknown'

const overtaken = (detail: string) =>
  conflict(`Somebody changed the policy at the same time${detail}; look at it again.`)

/** Terms and patterns can be secrets themselves, so the record names the version's body by a digest. */
const intentOf = (
  action: string,
  { policyId, version }: { policyId: string; version: number },
  { name, enabled, body, changed }: PolicyState & { changed?: string[] },
): Intent => ({
  action,
  resource: `policies/${policyId}`,
  detail: { name, version, enabled, changed, body_sha256: sha256Hex(canonicalJson(body)) },
})

type PolicyScope = PolicyBody['scope']
const scopeOnly = policyBody.pick({ scope: true }).loose()

/** The scope of a stored policy; empty for one that cannot be read, whose calls are refused (`loadPolicies`). */
function policyScopeOf({ body }: Pick<PolicyRow, 'body'>): PolicyScope {
  const parsed = scopeOnly.safeParse(body)
  return parsed.success ? parsed.data.scope : {}
}

const SCOPE_KINDS = [
  ['group', 'group_ids'],
  ['user', 'user_ids'],
  ['model', 'model_ids'],
  ['integration', 'integration_ids'],
] as const satisfies ReadonlyArray<readonly [NamedKind, keyof PolicyScope]>

const namesOf = (policyScope: PolicyScope): NamedAt[] =>
  SCOPE_KINDS.flatMap(([kind, member]) =>
    (policyScope[member] ?? []).map((name, index) => ({ kind, name, path: `scope.${member}.${index}` })),
  )

const checkPolicyScope = (scope: ChangeScope, policyScope: PolicyScope): Promise<void> =>
  requireKnown(scope, namesOf(policyScope))

async function withStaleNames(scope: ChangeScope, rows: PolicyRow[]): Promise<CurrentPolicy[]> {
  const named = rows.map((row) => namesOf(policyScopeOf(row)))
  const unknown = new Set(await unknownNames(scope, named.flat()))
  return rows.map((row, index) => ({
    ...row,
    staleScope: (named[index] ?? []).filter((at) => unknown.has(at)).map(({ name }) => name),
  }))
}

/** Concurrent changes can each pass, so the limits can be exceeded a little. Nothing depends on their exact value. */
async function checkTotals(scope: ChangeScope, policyId: string, body: unknown): Promise<void> {
  const others = await selectPolicyTotals(scope, policyId)
  if (others.count >= MOST_POLICIES) {
    throw conflict(`An organization has at most ${MOST_POLICIES} policies.`)
  }
  if (others.length + JSON.stringify(body).normalize('NFKC').length > LARGEST_TOTAL) {
    throw conflict(`The policies of an organization have at most ${LARGEST_TOTAL} characters together.`)
  }
}
