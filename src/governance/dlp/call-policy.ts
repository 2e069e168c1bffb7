import type { TokenVault } from './actions.ts'
import { Inspection, passAllEngine, type TextEngine } from './inspection.ts'
import { PolicyEngine } from './policy-engine.ts'
import { detectorOf, restoringDetector } from './profile-detector.ts'
import type { TextDetector } from './text-stream.ts'
import type { Direction, Profile } from './types.ts'

/** The policies of an organization as they hold for one call, for both ways it goes. */
export interface CallPolicy {
  requestInspection(): Inspection
  /** One for each answer that an upstream gives. */
  responseInspection(): Inspection
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
    blocksUninspectable,
    version,
    findings: () => sumOf(engines.map((engine) => engine.findings())),
  }
}

function sumOf(counts: ReadonlyArray<Record<string, number>>): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const count of counts) {
    for (const [name, times] of Object.entries(count)) sum[name] = (sum[name] ?? 0) + times
  }
  return sum
}
