import { chatCompletions } from '../../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../../../src/gateway/protocols/protocol.ts'
import { TokenVault } from '../../../../src/governance/dlp/actions.ts'
import { callPolicy } from '../../../../src/governance/dlp/call-policy.ts'
import type { Inspection } from '../../../../src/governance/dlp/inspection.ts'
import type { Action, CustomDetector, Direction, Profile } from '../../../../src/governance/dlp/types.ts'
import { applyEdits, type ByteEdit, joinBytes } from '../../../../src/lib/byte-edits.ts'
import { parseFrame, SseSplitter } from '../../../../src/lib/sse.ts'

/** A value that is found on its own. */
export const CODE = 'KX-1234-567890'
export const CODE_PATTERN: CustomDetector = {
  id: 'code',
  kind: 'pattern',
  pattern: 'KX-[0-9]{4}-[0-9]{6}',
  score: 1,
}

export function profileOf(direction: Direction, action: Action, custom = [CODE_PATTERN]): Profile {
  const rules = custom.map(({ id }) => ({ detector: id, minimumScore: 0, action }))
  return { direction, version: 'v', rules, custom, uninspectable: 'allow' }
}

export const vaultOf = (owner = 'o/u') => new TokenVault(new Uint8Array(32), owner)

/** The policy of a call: one action in every direction that is covered. */
export function policyOf(action: Action, covered: readonly Direction[] = DIRECTIONS, vault = vaultOf()) {
  const profile = (direction: Direction) =>
    covered.includes(direction) ? profileOf(direction, action) : null
  return callPolicy(
    {
      request: profile('request'),
      response: profile('response'),
      tool_arguments: profile('tool_arguments'),
      tool_result: profile('tool_result'),
    },
    vault,
  )
}

export const DIRECTIONS = ['request', 'response', 'tool_arguments', 'tool_result'] as const
export const PROTOCOLS: ReadonlyArray<readonly [name: string, protocol: Protocol]> = [
  ['chat', chatCompletions],
  ['messages', messages],
]

const decoder = new TextDecoder()

/** What becomes of a stream at a relay, without its time. */
export interface Relayed {
  told: string
  /** What ended it, if not its end. */
  failure: unknown
  inspection: Inspection
}

/**
 * Relays a stream frame by frame, as the gateway does.
 * @param upTo frames after which it breaks off.
 */
export function relayed(
  protocol: Protocol,
  inspection: Inspection,
  stream: string,
  upTo = Infinity,
): Relayed {
  const reader = protocol.streamReader({ inspection, modelId: null, usageAsked: true })
  let told = ''
  let count = 0
  try {
    for (const bytes of new SseSplitter().push(new TextEncoder().encode(stream))) {
      if (count++ >= upTo) break
      const frame = parseFrame(bytes)
      inspection.begin()
      const verdict = readOr(
        () => reader.read(frame),
        () => inspection.refuse(frame.bytes.length),
      )
      if (verdict.kind === 'drop') inspection.sink(0, frame.bytes.length)
      if (verdict.kind === 'failure') {
        if (verdict.forward === null) inspection.refuse(frame.bytes.length)
        else sinkEdits(inspection, frame.bytes, verdict.forward)
        break
      }
      if (verdict.kind !== 'forward') continue
      for (const held of verdict.before ?? []) {
        inspection.sink(held.released, held.withheld)
        told += decoder.decode(held.bytes)
      }
      told += sinkEdits(inspection, frame.bytes, verdict.edits)
    }
  } catch (failure) {
    inspection.abandon()
    return { told, failure, inspection }
  }
  inspection.abandon()
  return { told, failure: null, inspection }
}

function sinkEdits(inspection: Inspection, source: Uint8Array, edits: ByteEdit[]): string {
  const edited = applyEdits(source, edits)
  inspection.sink(edited.released, edited.withheld)
  return decoder.decode(joinBytes(edited.pieces))
}

function readOr<Result>(read: () => Result, otherwise: () => void): Result {
  try {
    return read()
  } catch (error) {
    otherwise()
    throw error
  }
}
