import { Inspection, passAllEngine, type TextEngine } from '../inspection.ts'
import type { TextDetector } from '../stream/text-stream.ts'
import type { Action, Direction, Profile } from '../types.ts'
import type { TokenVault } from './actions.ts'
import { type DetectorsByDirection, PolicyEngine } from './policy-engine.ts'
import { detectorOf, restoringDetector } from './profile-detector.ts'

/** The policies of an organization as they hold for one call, for both ways it goes. */
export interface CallPolicy {
  requestInspection(): Inspection
  /** One for each answer that an upstream gives. */
  responseInspection(): Inspection
  /**
   * For what is read again by its owner, or kept for that: nothing is refused, what would be blocked is redacted. Values
   * that models know by tokens stay, they are the owner's. What it finds is not told by `findings`.
   */
  readingInspection(): Inspection
  /** Whether content that no engine reads must not pass. */
  blocksUninspectable(direction: Direction): boolean
  version: string
  /** Of all inspections of the call: how often each kind was found. */
  findings(): Record<string, number>
}

/** The policy of an organization that has none. */
export const noPolicy: CallPolicy = {
  requestInspection: () => new Inspection(passAllEngine),
  responseInspection: () => new Inspection(passAllEngine),
  readingInspection: () => new Inspection(passAllEngine),
  blocksUninspectable: () => false,
  version: passAllEngine.policyVersion,
  findings: () => ({}),
}

export type ProfilesByDirection = Readonly<Record<Direction, Profile | null>>

/**
 * The policies that hold for one call. @param vault of its caller.
 * @throws PatternError for a policy that cannot be applied.
 */
export function callPolicy(profiles: ProfilesByDirection, vault: TokenVault): CallPolicy {
  const held = Object.values(profiles).filter((profile) => profile !== null)
  if (held.length === 0) return noPolicy
  const version = [...new Set(held.map((profile) => profile.version))].sort().join('+')
  const detectors = {
    request: profiles.request && detectorOf(profiles.request),
    response: profiles.response && detectorOf(profiles.response),
    tool_arguments: profiles.tool_arguments && detectorOf(profiles.tool_arguments),
    tool_result: profiles.tool_result && detectorOf(profiles.tool_result),
  }
  const blocksUninspectable = (direction: Direction) => profiles[direction]?.uninspectable === 'block'
  const engines: TextEngine[] = []
  const inspection = (kind: Direction, restores: boolean) => {
    const restored = (of: TextDetector | null) => (restores ? restoringDetector(of, vault) : of)
    const engine = new PolicyEngine({
      detectors: {
        ...detectors,
        response: restored(detectors.response),
        tool_arguments: restored(detectors.tool_arguments),
      },
      ...(restores && { signed: detectors.response }),
      policyVersion: version,
      kind,
      vault,
      blocksUninspectable,
    })
    engines.push(engine)
    return new Inspection(engine)
  }
  return {
    requestInspection: () => inspection('request', false),
    responseInspection: () => inspection('response', true),
    readingInspection: () => new Inspection(readingEngine(detectors, version, vault)),
    blocksUninspectable,
    version,
    findings: () => sumOf(engines.map((engine) => engine.findings())),
  }
}

function readingEngine(
  detectors: DetectorsByDirection,
  policyVersion: string,
  vault: TokenVault,
): TextEngine {
  return new PolicyEngine({
    detectors: {
      request: forReading(detectors.request),
      response: forReading(detectors.response),
      tool_arguments: forReading(detectors.tool_arguments),
      tool_result: forReading(detectors.tool_result),
    },
    policyVersion,
    kind: 'request',
    vault,
  })
}

/** What an action comes to when the owner of a text reads it. */
const READ_AS: Partial<Record<Action, Action>> = { tokenise: 'allow', block: 'redact' }

const forReading = (detector: TextDetector | null): TextDetector | null =>
  detector && {
    ...detector,
    actionOf(span) {
      const action = detector.actionOf(span)
      return READ_AS[action] ?? action
    },
  }

function sumOf(counts: ReadonlyArray<Record<string, number>>): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const count of counts) {
    for (const [name, times] of Object.entries(count)) sum[name] = (sum[name] ?? 0) + times
  }
  return sum
}
