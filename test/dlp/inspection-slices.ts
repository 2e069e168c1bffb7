import type { Inspection } from '../../src/dlp/inspection.ts'
import { inspectJson } from '../../src/dlp/json-inspection.ts'
import { TokenVault } from '../../src/dlp/policy/actions.ts'
import { callPolicy } from '../../src/dlp/policy/call-policy.ts'
import type { CustomDetector, Profile } from '../../src/dlp/types.ts'
import { OPERATIONS } from '../../src/gateway/protocols/operations.ts'
import type { Protocol } from '../../src/gateway/protocols/protocol.ts'
import { requestEdits } from '../../src/gateway/protocols/request-edits.ts'
import { inspectRequest } from '../../src/gateway/protocols/request-inspection.ts'
import { PASSED_FRAMES, StreamPipeline } from '../../src/gateway/relay/stream-pipeline.ts'
import { ApiError } from '../../src/lib/api-error.ts'
import { applyEditsInSlices } from '../../src/lib/byte-edits.ts'
import type { Slices } from '../../src/lib/slices.ts'
import { SseReader } from '../../src/lib/sse.ts'
import { readResponseRequest } from '../../src/responses/context/load-request.ts'
import { redactItem, redactItems } from '../../src/responses/items/redaction.ts'
import { fullProfile } from './engine-under-test.ts'
import { type AnswerInput, answerInputs, type SliceInput, type StreamInput } from './slice-inputs.ts'

/** Matches of the patterns have a bound: others are searched in the whole text at once. */
const CUSTOM: readonly CustomDetector[] = [
  { id: 'codes', kind: 'pattern', pattern: '\\bKX-[0-9]{4}(?:-[0-9]{1,6}){0,4}', score: 1 },
  { id: 'terms', kind: 'dictionary', terms: ['a b', 'term', 'term term', 'ipsum'], score: 1 },
]

const PLAIN = fullProfile()
const WITH_CUSTOM = fullProfile(CUSTOM)

/** A policy with every detector, in every direction. */
function policyOf(profile: Profile) {
  const profiles = { request: profile, response: profile, tool_arguments: profile, tool_result: profile }
  return callPolicy(profiles, new TokenVault(new Uint8Array(32), 'owner'))
}

/** Copies bytes into a resizable buffer, in which the gateway holds large bodies. */
export function heldBytes(bytes: Uint8Array): Uint8Array {
  const held = new Uint8Array(new ArrayBuffer(bytes.length, { maxByteLength: bytes.length }))
  held.set(bytes)
  return held
}

/**
 * Everything that is done to a request before it is sent, in slices.
 * @returns the code of a refusal, or 'passed'.
 */
export function* inspectionSlices(input: SliceInput, body: Uint8Array): Slices<string> {
  const policy = policyOf(input.custom ? WITH_CUSTOM : PLAIN)
  const { protocol } = OPERATIONS[input.operation]
  try {
    if (input.operation === 'responses') {
      // The items are redacted before they are stored.
      const { items } = yield* readResponseRequest(body)
      for (const item of items) if ('bytes' in item) yield* redactItem(policy, item.bytes)
    }
    const outline = yield* protocol.outline(body)
    const inspection: Inspection = policy.requestInspection()
    const found = yield* inspectRequest(outline, protocol, inspection)
    const { changedThinking } = found
    const target = { upstreamModel: 'm', capabilities: [], changedThinking }
    const { body: edits } = yield* requestEdits(outline, protocol, target)
    yield* applyEditsInSlices(body, [...edits, ...found.edits])
    return 'passed'
  } catch (error) {
    if (error instanceof ApiError) return error.code ?? error.kind
    throw error
  }
}

/** The tokens of one call. */
const vault = new TokenVault(new Uint8Array(32), 'owner')
export const ANSWER_INPUTS = answerInputs(vault.tokenFor('email', 'ada@example.com'))

/** Everything that is done to an answer, a result of a tool, or an item for its owner, in slices. */
export function* answerSlices({ kind, restores }: AnswerInput, body: Uint8Array): Slices<void> {
  const profiles = { request: PLAIN, response: PLAIN, tool_arguments: PLAIN, tool_result: PLAIN }
  const policy = callPolicy(profiles, restores ? vault : new TokenVault(new Uint8Array(32), 'owner'))
  const inspection = policy.responseInspection()
  if (kind === 'tool_result') yield* inspectJson(inspection, body, 'tool_result')
  else if (kind === 'item') yield* redactItems(policy, [JSON.parse(new TextDecoder().decode(body)) as object])
  else {
    inspection.begin()
    const context = { inspection, modelId: null, usageRequested: false }
    const { edits } = yield* OPERATIONS[kind].protocol.readAnswer(body, context)
    yield* applyEditsInSlices(body, edits)
  }
}

/** Size of a chunk from an upstream. */
const CHUNK_BYTES = 64 * 1024

/** Everything that is done to the frames of a stream, in slices. @returns how the stream ended. */
export function* streamSlices({ kind, chunks }: StreamInput, bytes: number): Slices<string> {
  const { protocol }: { protocol: Protocol } = OPERATIONS[kind]
  const inspection = policyOf(PLAIN).responseInspection()
  const pipeline = new StreamPipeline({
    frames: new SseReader(),
    reader: protocol.streamReader({ inspection, modelId: 'ours', usageRequested: true }),
    inspection,
    converter: PASSED_FRAMES,
    passes: true,
    redact: (frame) => frame,
    redactFrame: (frame) => frame,
  })
  for (const chunk of chunks(bytes)) {
    for (let at = 0; at < chunk.length; at += CHUNK_BYTES) {
      yield* pipeline.push(chunk.subarray(at, at + CHUNK_BYTES))
      yield
    }
  }
  yield* pipeline.close()
  return pipeline.end?.kind ?? 'open'
}
