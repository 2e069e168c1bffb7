import type { Inspection } from '../../../src/dlp/inspection.ts'
import { TokenVault } from '../../../src/dlp/policy/actions.ts'
import { callPolicy } from '../../../src/dlp/policy/call-policy.ts'
import type { Action, CustomDetector, Direction, Profile } from '../../../src/dlp/types.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import { PASSED_FRAMES, StreamPipeline } from '../../../src/gateway/relay/stream-pipeline.ts'
import { joinBytes } from '../../../src/lib/byte-edits.ts'
import { drained } from '../../../src/lib/slices.ts'
import { SseReader } from '../../../src/lib/sse.ts'

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

/** The output of a relay, without its times. */
export interface Relayed {
  output: string
  /** The error that ended it early. */
  failure: unknown
  inspection: Inspection
}

/**
 * Passes a stream through the gateway's pipeline to a caller of the same protocol.
 * @param upTo frames after which it breaks off.
 */
export function relayed(
  protocol: Protocol,
  inspection: Inspection,
  stream: string,
  upTo = Infinity,
): Relayed {
  const sse = new SseReader()
  const pipeline = new StreamPipeline({
    frames: {
      get unfinished() {
        return sse.unfinished
      },
      push: (chunk) => sse.push(chunk).slice(0, upTo),
    },
    reader: protocol.streamReader({ inspection, modelId: null, usageRequested: true }),
    inspection,
    converter: PASSED_FRAMES,
    passes: true,
    redact: (bytes) => bytes,
    redactFrame: (bytes) => bytes,
  })
  const units = drained(pipeline.push(new TextEncoder().encode(stream)))
  pipeline.abandon()
  const { end } = pipeline
  const failureUnits = end?.kind === 'failed' ? (end.failureUnits ?? []) : []
  const output = decoder.decode(joinBytes([...units, ...failureUnits]))
  return { output, failure: (end?.kind === 'failed' && end.error) || null, inspection }
}
