import type { Database } from '../../../schema/database.ts'
import { WeightedMap } from '../../lib/weighted-map.ts'
import { policyBody } from '../../wire/dlp.ts'
import { type CurrentPolicyRow, selectEnabledPolicies, versionKey } from './policies.store.ts'
import { type DlpPolicy, PolicyError } from './profiles.ts'

interface Cached {
  epoch: number
  policies: readonly DlpPolicy[]
}

/** Per character of a term: 14 in the automaton of its dictionary, the rest in the term itself. */
const BYTES_OF_CHARACTER = 16
const BYTES_OF_TERM = 30

/** Cached results by organization. They are never promises: the runtime cancels pending I/O with the request that started it. */
const cache = new WeightedMap<string, Cached>({ entries: 5_000, weight: 40_000_000 })

/**
 * The enabled policies of an organization, cached by this isolate under the organization's epoch: every change of a
 * policy raises the epoch in the same transaction. So a confirmed epoch (`confirmRights`) has the current policies, and
 * a call with the cached epoch reads nothing.
 *
 * As long as no policy changed, the array is the same one, whatever raised the epoch, so that profiles stay compiled.
 * @param epoch of the principal, after `confirmRights`.
 * @throws the database's error, or PolicyError for a policy that cannot be read. The call must be refused then.
 */
export async function loadPolicies(
  deps: { database: Database },
  organizationId: string,
  epoch: number,
): Promise<readonly DlpPolicy[]> {
  const cached = cache.get(organizationId)
  if (cached?.epoch === epoch) return cached.policies
  const known = new Map(cached?.policies.map((policy) => [versionKey(policy), policy]))
  const rows = await selectEnabledPolicies(deps.database, organizationId, [...known.keys()])
  const policies = rows.map((row) => known.get(versionKey(row)) ?? readPolicy(row))
  const same =
    cached?.policies.length === policies.length &&
    policies.every((policy, index) => policy === cached.policies[index])
  const current = same ? cached.policies : policies
  cache.set(organizationId, { epoch, policies: current }, weightOf(current))
  return current
}

/** @throws PolicyError, which quotes nothing of the policy. */
function readPolicy({ id, version, name, body }: CurrentPolicyRow): DlpPolicy {
  const parsed = policyBody.safeParse(body)
  if (parsed.success) return { id, version, name, enabled: true, body: parsed.data }
  const where = parsed.error.issues.map(({ path }) => path.map(String).join('.')).slice(0, 5)
  throw new PolicyError(`version ${version} of policy ${id} cannot be read: ${where.join(', ')}`)
}

/** Estimated bytes of policies, with their compiled form. */
function weightOf(policies: readonly DlpPolicy[]): number {
  let weight = 0
  for (const { body } of policies) {
    weight += 1_000 + 200 * body.rules.length
    for (const { terms } of body.dictionaries) {
      for (const term of terms) weight += BYTES_OF_CHARACTER * term.length + BYTES_OF_TERM
    }
  }
  return weight
}
