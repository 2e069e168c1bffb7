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
  /** Number of findings of each kind, over all inspections of the call. */
  findings(): Record<string, number>
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
  findings: () => ({}),
}

/**
 * The policies that hold for one call. @param vault of its caller.
 * @throws PatternError for a policy that cannot be applied.
 */
export function callPolicy(profiles: Profiles, vault: TokenVault): CallPolicy {
  const inForce = Object.values(profiles).filter((profile) => profile !== null)
  if (inForce.length === 0) return noPolicy
  const version = [...new Set(inForce.map((profile) => profile.version))].sort().join('+')
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
    findings: () => sumOf(engines.map((engine) => engine.findings())),
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

function sumOf(counts: ReadonlyArray<Record<string, number>>): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const count of counts) {
    for (const [name, times] of Object.entries(count)) sum[name] = (sum[name] ?? 0) + times
  }
  return sum
}
