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

/** The policies that hold for one call. @param vault of its caller. */
export function callPolicy(profiles: ProfilesByDirection, vault: TokenVault): CallPolicy {
  const held = Object.values(profiles).filter((profile) => profile !== null)
  if (held.length === 0) return noPolicy
  const version = [...new Set(held.map((profile) => profile.version))].sort().join('+')
  const detector = (direction: Direction) => {
    const profile = profiles[direction]
    return profile && detectorOf(profile)
  }
  const engines: TextEngine[] = []
  const inspection = (kind: Direction, restores: boolean) => {
    const restored = (of: TextDetector | null) => (restores ? restoringDetector(of, vault) : of)
    const engine = new PolicyEngine({
      detectors: {
        request: detector('request'),
        response: restored(detector('response')),
        tool_arguments: restored(detector('tool_arguments')),
        tool_result: detector('tool_result'),
      },
      policyVersion: version,
      kind,
      vault,
    })
    engines.push(engine)
    return new Inspection(engine)
  }
  return {
    requestInspection: () => inspection('request', false),
    responseInspection: () => inspection('response', true),
    blocksUninspectable: (direction) => profiles[direction]?.uninspectable === 'block',
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
