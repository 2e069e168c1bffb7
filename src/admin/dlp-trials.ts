import { replacementFor, TokenVault } from '../dlp/policy/actions.ts'
import { detectorOf } from '../dlp/policy/profile-detector.ts'
import { actionOf, profilesFor } from '../dlp/policy/profiles.ts'
import { detect } from '../dlp/scan/detect.ts'
import { TextStream } from '../dlp/stream/text-stream.ts'
import type { Action, Category, Direction, Finding, Profile } from '../dlp/types.ts'
import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import { ApiError, unprocessable } from '../lib/api-error.ts'
import { ACTIONS, type PolicyBody, type PolicyDryRun, type PolicyTrial, policyBody } from '../wire/dlp.ts'
import { checkBody, readPolicy } from './dlp-policies.ts'

// The effect of a policy on a text, as a trial. Nothing of the text is stored, logged or audited.

interface TrialFinding extends Finding {
  action: Action
}

interface TrialResult {
  direction: Direction
  spans: TrialFinding[]
  /** Whether the call would be refused. */
  blocked: boolean
  /** The text that would pass in its place, with tokens of this trial only; null when the call would be refused. */
  text: string | null
  /** Null where the text was not tried as a stream. */
  held_back: HeldBack | null
}

/** The most that a stream holds back at once, in UTF-16 units. */
interface HeldBack {
  most: number
  /** Units that had arrived then. */
  at: number
}

interface FindingCount {
  detector: string
  category: Category
  action: Action
  count: number
}

interface DryRunResult {
  direction: Direction
  samples: number
  /** Samples with findings, and samples that would be blocked. */
  withFindings: number
  blocked: number
  findings: FindingCount[]
}

/**
 * Applies a policy to a text as if it were the only one and its scope fitted.
 * @throws ApiError `unprocessable` for a policy that cannot be enforced or does not cover the direction; `not_found`;
 * `internal` when the text could not be inspected.
 */
export async function tryPolicy(scope: ChangeScope, trial: PolicyTrial): Promise<TrialResult> {
  const profile = await triedProfile(scope, trial)
  const spans = inspect(trial.text, profile)
  const blocked = spans.some(({ action }) => action === 'block')
  return {
    direction: profile.direction,
    spans,
    blocked,
    text: blocked ? null : applied(trial.text, spans),
    held_back: trial.stream ? heldBack(trial.text, profile) : null,
  }
}

/** Applies a policy to many texts, and returns only counts. */
export async function dryRunPolicy(scope: ChangeScope, dryRun: PolicyDryRun): Promise<DryRunResult> {
  const profile = await triedProfile(scope, dryRun)
  const counts = new Map<string, FindingCount>()
  const { direction } = profile
  const result = { direction, samples: dryRun.samples.length, withFindings: 0, blocked: 0 }
  for (const sample of dryRun.samples) {
    const findings = inspect(sample, profile)
    if (findings.length > 0) result.withFindings += 1
    if (findings.some(({ action }) => action === 'block')) result.blocked += 1
    for (const { detector, category, action } of findings) {
      const key = `${detector} ${action}`
      const counted = counts.get(key) ?? { detector, category, action, count: 0 }
      counted.count += 1
      counts.set(key, counted)
    }
  }
  return { ...result, findings: [...counts.values()].sort(mostSevereFirst) }
}

const mostSevereFirst = (left: FindingCount, right: FindingCount) =>
  ACTIONS.indexOf(right.action) - ACTIONS.indexOf(left.action) ||
  right.count - left.count ||
  (left.detector < right.detector ? -1 : 1)

interface Tried {
  policy?: PolicyBody | undefined
  policy_id?: string | undefined
  direction?: Direction | undefined
}

async function triedProfile(
  scope: ChangeScope,
  { policy, policy_id: policyId, direction }: Tried,
): Promise<Profile> {
  const stored = policyId === undefined ? null : await readPolicy(scope, policyId)
  const body = checkBody(stored === null ? policyBody.parse(policy) : policyBody.parse(stored.body))
  const { id, version, name } = stored ?? { id: 'tried', version: 0, name: 'tried' }
  const profiles = profilesFor([{ id, version, name, enabled: true, body: { ...body, scope: {} } }], {
    groupIds: [],
    userId: '',
    modelId: null,
    integrationId: null,
  })
  const profile = profiles[direction ?? body.directions[0] ?? 'request']
  if (profile === null) throw unprocessable(`direction: the policy covers ${body.directions.join(', ')}`)
  return profile
}

/** The engine's own error is dropped, because its message could quote the text into a log. */
function inspect(text: string, profile: Profile): TrialFinding[] {
  try {
    return detect(text, profile).flatMap((span) => {
      const action = actionOf(profile, span)
      return action === null ? [] : [{ ...span, action }]
    })
  } catch {
    throw new ApiError('internal', 'The text could not be inspected.')
  }
}

/** Units of a piece: about those of a token of a model. */
const PIECE_UNITS = 4

/** What a stream of a text holds back. Nothing is replaced, so that a finding which blocks does not end it. */
function heldBack(text: string, profile: Profile): HeldBack {
  const stream = new TextStream(detectorOf(profile), () => null)
  const most = { most: 0, at: 0 }
  try {
    for (let at = 0; at < text.length; at += PIECE_UNITS) {
      const piece = text.slice(at, at + PIECE_UNITS)
      stream.push(piece)
      if (stream.heldUnits > most.most) Object.assign(most, { most: stream.heldUnits, at: at + piece.length })
    }
  } catch {
    throw new ApiError('internal', 'The text could not be inspected.')
  }
  return most
}

function applied(text: string, findings: readonly TrialFinding[]): string {
  const vault = new TokenVault(crypto.getRandomValues(new Uint8Array(32)), 'trial')
  let result = ''
  let at = 0
  for (const finding of findings) {
    const found = text.slice(finding.start, finding.end)
    result += text.slice(at, finding.start) + (replacementFor(finding, found, vault) ?? found)
    at = finding.end
  }
  return result + text.slice(at)
}
