import { BoundedMap } from '../../lib/bounded-map.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import { ACTIONS, type PolicyBody } from '../../wire/dlp.ts'
import { BUILT_IN_DETECTORS, type BuiltInDetector } from '../detectors/registry.ts'
import {
  type Action,
  type ByDirection,
  byDirection,
  type CustomDetector,
  type Direction,
  type Profile,
  type ProfileRule,
} from '../types.ts'

/** A version of a policy of an organization. */
export interface DlpPolicy {
  id: string
  version: number
  name: string
  enabled: boolean
  body: PolicyBody
}

/** The properties of a call that scopes name. */
export interface PolicySubject {
  groupIds: readonly string[]
  userId: string
  /** Null where no model takes part. */
  modelId: string | null
  /** Null where no tool of an integration takes part. */
  integrationId: string | null
}

/** The profiles of one call; null where no policy covers the direction. */
export type Profiles = ByDirection<Profile | null>

/** A policy that cannot be enforced as it stands. Calls it would hold for have to be refused. */
export class PolicyError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'PolicyError'
  }
}

/** Longer texts are replaced by a digest. */
const LONGEST_VERSION_TEXT = 160
/** Sets of policies that apply together, of one organization: by group and model. */
const CACHED_SETS = 100

const cached = new WeakMap<readonly DlpPolicy[], BoundedMap<string, Profiles>>()

/**
 * The profiles of one call: the union of the policies that are enabled and whose scope fits. If several rules name
 * a detector, the most severe action whose minimum score a finding reaches counts (`actionOf`). So a profile has several
 * rules for a detector if a higher score has a more severe action.
 *
 * Pure. The same array of policies with the same fitting ones returns the same profiles, so that their scan plans are
 * compiled once.
 * @throws PolicyError for a rule on a detector that `detectors` does not have.
 */
export function profilesFor(
  policies: readonly DlpPolicy[],
  subject: PolicySubject,
  detectors: readonly BuiltInDetector[] = BUILT_IN_DETECTORS,
): Profiles {
  const fitting = policies.filter((policy) => policy.enabled && fits(policy.body.scope, subject))
  const key = fitting.map(({ id }) => id).join()
  const known = cached.get(policies)?.get(key)
  if (known) return known
  const profiles = compileProfiles(fitting, customNames(policies, detectors), detectors)
  const sets = cached.get(policies) ?? new BoundedMap<string, Profiles>(CACHED_SETS)
  sets.set(key, profiles)
  cached.set(policies, sets)
  return profiles
}

const unions = new WeakMap<Profile, WeakMap<Profile, Profile>>()

/**
 * The rules of two profiles together, with the direction and the rest of the second. The same ones return the same
 * profile, so that its scan plan is compiled once.
 */
export function unionOf(other: Profile | null, profile: Profile | null): Profile | null {
  if (other === null || profile === null) return profile ?? other
  if (other.version === profile.version) return profile
  const known = unions.get(profile)?.get(other)
  if (known) return known
  const ids = new Set(profile.custom.map(({ id }) => id))
  const union = {
    ...profile,
    rules: [...profile.rules, ...other.rules],
    custom: [...profile.custom, ...other.custom.filter(({ id }) => !ids.has(id))],
  }
  const pairs = unions.get(profile) ?? new WeakMap<Profile, Profile>()
  unions.set(profile, pairs.set(other, union))
  return union
}

/** The most severe action of the rules whose minimum score a finding reaches; null when it reaches none. */
export function actionOf(profile: Profile, finding: { detector: string; score: number }): Action | null {
  let severest: Action | null = null
  for (const rule of profile.rules) {
    if (rule.detector !== finding.detector || finding.score < rule.minimumScore) continue
    if (severest === null || severity(rule.action) > severity(severest)) severest = rule.action
  }
  return severest
}

/**
 * Names the version of every policy: `<policy id>@<version>` in order of the ids, or a digest of a longer text.
 * @internal Tests compare the versions of policies.
 */
export function versionOf(policies: readonly Pick<DlpPolicy, 'id' | 'version'>[]): string {
  const text = policies
    .map(({ id, version }) => `${id}@${version}`)
    .sort()
    .join()
  return text.length <= LONGEST_VERSION_TEXT ? text : `sha256:${sha256Hex(text).slice(0, 32)}`
}

const severity = (action: Action) => ACTIONS.indexOf(action)

function fits(scope: PolicyBody['scope'], subject: PolicySubject): boolean {
  const { group_ids: groups, user_ids: users, model_ids: models, integration_ids: integrations } = scope
  return (
    (groups === undefined || groups.some((id) => subject.groupIds.includes(id))) &&
    (users === undefined || users.includes(subject.userId)) &&
    (models === undefined || (subject.modelId !== null && models.includes(subject.modelId))) &&
    (integrations === undefined ||
      (subject.integrationId !== null && integrations.includes(subject.integrationId)))
  )
}

/** The name of a policy's pattern or dictionary in findings. */
type CustomNames = (policy: DlpPolicy, id: string) => string

/**
 * The name is the id, with that of its policy where another enabled policy or a detector has the same id. Over all
 * policies of the organization, so that a finding has one name in all of a user's calls.
 */
function customNames(policies: readonly DlpPolicy[], detectors: readonly BuiltInDetector[]): CustomNames {
  const taken = new Set(detectors.map(({ id }) => id))
  const shared = new Set<string>()
  for (const { enabled, body } of policies) {
    for (const { id } of enabled ? [...body.patterns, ...body.dictionaries] : []) {
      if (taken.has(id)) shared.add(id)
      taken.add(id)
    }
  }
  return (policy, id) => (shared.has(id) ? `${id}--${policy.id.replaceAll('-', '').slice(0, 12)}` : id)
}

function compileProfiles(
  policies: readonly DlpPolicy[],
  names: CustomNames,
  detectors: readonly BuiltInDetector[],
): Profiles {
  return byDirection((direction) => compileProfile(policies, direction, names, detectors))
}

function compileProfile(
  policies: readonly DlpPolicy[],
  direction: Direction,
  names: CustomNames,
  detectors: readonly BuiltInDetector[],
): Profile | null {
  const covering = policies.filter(({ body }) => body.directions.includes(direction))
  if (covering.length === 0) return null
  const rules = withoutIneffective(covering.flatMap((policy) => rulesOf(policy, names, detectors)))
  const ruled = new Set(rules.map(({ detector }) => detector))
  const custom = covering.flatMap((policy) => customOf(policy, names)).filter(({ id }) => ruled.has(id))
  return {
    direction,
    version: versionOf(covering),
    rules,
    custom: custom.sort((left, right) => compareText(left.id, right.id)),
    uninspectable: covering.some(({ body }) => blocksUninspectable(body, direction)) ? 'block' : 'allow',
  }
}

/** Tool results that cannot be inspected are blocked unless a policy allows them. */
function blocksUninspectable({ uninspectable }: PolicyBody, direction: Direction): boolean {
  return (uninspectable[direction] ?? (direction === 'tool_result' ? 'block' : 'allow')) === 'block'
}

function rulesOf(
  policy: DlpPolicy,
  names: CustomNames,
  detectors: readonly BuiltInDetector[],
): ProfileRule[] {
  const { patterns, dictionaries, rules } = policy.body
  const own = [...patterns, ...dictionaries].map(({ id }) => id)
  return rules.flatMap(({ detector, category, custom, minimum_score: minimum, action }): ProfileRule[] => {
    const onCustom = (id: string) => ({ detector: names(policy, id), minimumScore: minimum ?? 0, action })
    if (custom !== undefined) {
      if (!own.includes(custom)) throw new PolicyError(`policy ${policy.id} has no pattern called ${custom}`)
      return [onCustom(custom)]
    }
    if (category === 'custom') return own.map(onCustom)
    const meant = detectors.filter(({ id, category: kind }) => id === detector || kind === category)
    if (meant.length === 0) {
      throw new PolicyError(`policy ${policy.id} asks for ${detector ?? category}, which is not known here`)
    }
    return meant.map(({ id, minimumScore }) => ({
      detector: id,
      minimumScore: minimum ?? minimumScore,
      action,
    }))
  })
}

/** Drops rules without effect: another one has no higher minimum score and is at least as severe. */
function withoutIneffective(rules: readonly ProfileRule[]): ProfileRule[] {
  const sorted = rules.toSorted(
    (left, right) =>
      compareText(left.detector, right.detector) ||
      left.minimumScore - right.minimumScore ||
      severity(right.action) - severity(left.action),
  )
  const kept: ProfileRule[] = []
  for (const rule of sorted) {
    const last = kept.at(-1)
    // Scores rise from one kept rule to the next, so each has to be more severe than the one before it.
    if (last?.detector === rule.detector && severity(rule.action) <= severity(last.action)) continue
    kept.push(rule)
  }
  return kept
}

function customOf(policy: DlpPolicy, names: CustomNames): CustomDetector[] {
  const { patterns, dictionaries } = policy.body
  return [
    ...patterns.map((one) =>
      sameCustom(one, names(policy, one.id), ({ pattern, ignore_case: ignoreCase, score }, id) => {
        return { id, kind: 'pattern', pattern, ignoreCase, score }
      }),
    ),
    ...dictionaries.map((one) =>
      sameCustom(one, names(policy, one.id), ({ terms, ignore_case: ignoreCase, score }, id) => {
        return { id, kind: 'dictionary', terms, ignoreCase, score }
      }),
    ),
  ]
}

const customDetectors = new WeakMap<object, CustomDetector>()

/** Returns one object for all directions and profiles: compiled detectors can be large, and are cached by its identity. */
function sameCustom<Source extends object>(
  source: Source,
  id: string,
  make: (source: Source, id: string) => CustomDetector,
): CustomDetector {
  const known = customDetectors.get(source)
  if (known?.id === id) return known
  const made = make(source, id)
  customDetectors.set(source, made)
  return made
}

/** Compares by code unit, independent of the locale. */
const compareText = (left: string, right: string) => (left < right ? -1 : left > right ? 1 : 0)
