import { DIRECTIONS } from '../../wire/dlp.ts'
import type { FindingGroup, PolicyRecord } from '../../wire/records.ts'
import { Inspection, passAllEngine, type TextEngine } from '../inspection.ts'
import type { TextDetector } from '../stream/text-stream.ts'
import { type Action, type ByDirection, byDirection, type Direction } from '../types.ts'
import type { TokenVault } from './actions.ts'
import { PolicyEngine } from './policy-engine.ts'
import { detectorOf, restoringDetector } from './profile-detector.ts'
import { type Profiles, unionOf } from './profiles.ts'

/** The policies that hold for one call, in all directions. */
export interface CallPolicy {
  requestInspection(): Inspection
  /** The inspection of a text that is not sent yet: `findings` does not count its findings. */
  trialInspection(): Inspection
  /** A new one for each answer of an upstream. */
  responseInspection(): Inspection
  /**
   * For stored content that its owner reads: nothing is refused, what would be blocked is redacted, and values that
   * models get tokens for stay, since they are the owner's. `findings` does not count what it finds.
   */
  redactionInspection(): Inspection
  /** Whether content that no engine reads must not pass. */
  blocksUninspectable(direction: Direction): boolean
  version: string
  /** What was found, over all inspections of the call. */
  record(): PolicyRecord
}

/**
 * The policy of an organization that has none.
 * @internal Tests redact under it.
 */
export const noPolicy: CallPolicy = {
  requestInspection: () => new Inspection(passAllEngine),
  trialInspection: () => new Inspection(passAllEngine),
  responseInspection: () => new Inspection(passAllEngine),
  redactionInspection: () => new Inspection(passAllEngine),
  blocksUninspectable: () => false,
  version: passAllEngine.policyVersion,
  record: () => ({ policyVersion: passAllEngine.policyVersion, findings: {} }),
}

/**
 * The policies that hold for one call. @param vault of its caller.
 * @throws PatternError for a policy that cannot be applied.
 */
export function callPolicy(profiles: Profiles, vault: TokenVault): CallPolicy {
  if (DIRECTIONS.every((direction) => profiles[direction] === null)) return noPolicy
  const versionOf = (directions: readonly Direction[]) =>
    [...new Set(directions.flatMap((each) => profiles[each]?.version ?? []))].sort().join('+')
  const version = versionOf(DIRECTIONS)
  const detectors = byDirection((direction) => {
    const profile = profiles[direction]
    return profile && detectorOf(profile)
  })
  // All of a request is sent by the caller, who also says which of it is a tool's: both policies hold there.
  const sent = byDirection((direction) => {
    const profile = unionOf(profiles.request, profiles[direction])
    return profile && detectorOf(profile)
  })
  const blocksUninspectable = (direction: Direction) => profiles[direction]?.uninspectable === 'block'
  const engines: TextEngine[] = []
  const engineOf = (kind: Direction) => {
    const restores = kind === 'response'
    const restored = (of: TextDetector | null) => (restores ? restoringDetector(of, vault) : of)
    return new PolicyEngine({
      detectors: restores
        ? {
            ...detectors,
            response: restored(detectors.response),
            tool_arguments: restored(detectors.tool_arguments),
            tool_result: restored(detectors.tool_result),
          }
        : sent,
      ...(restores && { signed: detectors.response }),
      policyVersion: version,
      versionIn: (direction) => versionOf(restores ? [direction] : ['request', direction]),
      kind,
      vault: restores ? vault.forAnswers() : vault,
      blocksUninspectable,
    })
  }
  const inspection = (kind: Direction) => {
    const engine = engineOf(kind)
    engines.push(engine)
    return new Inspection(engine)
  }
  return {
    requestInspection: () => inspection('request'),
    trialInspection: () => new Inspection(engineOf('request')),
    responseInspection: () => inspection('response'),
    redactionInspection: () => new Inspection(redactionEngine(detectors, version, vault)),
    blocksUninspectable,
    version,
    record: () => policyRecord(version, engines),
  }
}

function redactionEngine(
  detectors: ByDirection<TextDetector | null>,
  policyVersion: string,
  vault: TokenVault,
): TextEngine {
  return new PolicyEngine({
    detectors: byDirection((direction) => forOwner(detectors[direction])),
    policyVersion,
    kind: 'request',
    vault,
  })
}

/** The action in place of another when the owner of a text reads it. */
const ACTION_FOR_OWNER: Partial<Record<Action, Action>> = { tokenise: 'allow', block: 'redact' }

const forOwner = (detector: TextDetector | null): TextDetector | null =>
  detector && {
    ...detector,
    actionOf(span) {
      const action = detector.actionOf(span)
      return ACTION_FOR_OWNER[action] ?? action
    },
  }

/** Sums the findings of engines. */
function policyRecord(policyVersion: string, engines: readonly TextEngine[]): PolicyRecord {
  const findings: Record<string, number> = {}
  const groups = new Map<string, FindingGroup>()
  for (const { direction, action, policy, findings: found } of engines.flatMap((each) => each.findings())) {
    const name = `${direction} ${action} ${policy}`
    const group = groups.get(name) ?? { direction, action, policy, findings: {} }
    groups.set(name, group)
    addCounts(group.findings, found)
    addCounts(findings, found)
  }
  return { policyVersion, findings, ...(groups.size > 0 && { breakdown: [...groups.values()] }) }
}

function addCounts(sums: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count
}
