import type { Database } from '../../../../schema/database.ts'
import { policyBody } from '../../../wire/dlp.ts'
import { type CurrentPolicyRow, selectEnabledPolicies, versionKey } from './policies.store.ts'
import { type DlpPolicy, PolicyError } from './policy.ts'

interface Cached {
  epoch: number
  policies: readonly DlpPolicy[]
  /** Bytes that the policies take, compiled as well, about. */
  weight: number
}

/** What an isolate, which has 128 MB in all, may hold of policies: organizations, and bytes. */
const MOST_ORGANIZATIONS = 5_000
const LARGEST_WEIGHT = 40_000_000
/** Of a character of a term: 14 in its dictionary's automaton, the rest in the term itself. */
const BYTES_OF_CHARACTER = 16
const BYTES_OF_TERM = 30

/** Results, never promises: pending I/O that requests share dies with the request that started it. Oldest first. */
const cache = new Map<string, Cached>()
let heldWeight = 0

/**
 * The enabled policies of an organization, cached by this isolate under the organization's epoch: every change of a
 * policy raises the epoch in the same transaction, so it counts wherever the epoch has been confirmed (`confirmRights`),
 * and a call whose epoch is the cached one asks nobody.
 *
 * As long as no policy changed, the array is the same one, whatever raised the epoch; what `profilesFor` made of it stays.
 * @param epoch of the principal, after `confirmRights`.
 * @throws whatever the database throws when it has to be asked and cannot be, PolicyError for a policy that cannot be
 * read. Nothing may be let through then.
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
  const held = same ? cached.policies : policies
  keep(organizationId, { epoch, policies: held, weight: weightOf(held) })
  return held
}

/** @throws PolicyError without a word of what the policy says. */
function readPolicy({ id, version, name, body }: CurrentPolicyRow): DlpPolicy {
  const parsed = policyBody.safeParse(body)
  if (parsed.success) return { id, version, name, enabled: true, body: parsed.data }
  const where = parsed.error.issues.map(({ path }) => path.map(String).join('.')).slice(0, 5)
  throw new PolicyError(`version ${version} of policy ${id} cannot be read: ${where.join(', ')}`)
}

function keep(organizationId: string, entry: Cached): void {
  forget(organizationId)
  if (entry.weight > LARGEST_WEIGHT) return
  cache.set(organizationId, entry)
  heldWeight += entry.weight
  for (const oldest of cache.keys()) {
    if (cache.size <= MOST_ORGANIZATIONS && heldWeight <= LARGEST_WEIGHT) return
    forget(oldest)
  }
}

function forget(organizationId: string): void {
  heldWeight -= cache.get(organizationId)?.weight ?? 0
  cache.delete(organizationId)
}

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
