import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import { ApiError } from '../../lib/api-error.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
import { drained } from '../../lib/slices.ts'
import type { Json } from './json.ts'
import { inspectRequest } from './request-inspection.ts'
import type { RequestOutline } from './request-outline.ts'
import { responses } from './responses.ts'

/**
 * Tools of this service stand in nearly every turn of a response, with the same definitions. So each is serialized, outlined,
 * inspected under a policy and translated once for each isolate, and a turn is read without them. What is known of a
 * definition is kept by its object: the tools of integrations differ by organization, and are never among them.
 */

/** A definition of this service, which no caller can change. */
export interface OwnTool {
  /** The definition as sent and parsed again; always the same object. */
  definition: Json
  /** The definition as JSON. */
  bytes: Uint8Array
  /** The definition alone in a turn. */
  outline: RequestOutline
  /**
   * The bytes that policies inspect in it, by the version of policies that find nothing. A version names the policies of one
   * organization, with their rules.
   */
  cleanUnder: BoundedMap<string, number>
}

/** Tools of this service in the body of a turn. Its reader may treat them as any other tools. */
export interface OwnTools {
  tools: readonly OwnTool[]
  /** Index of the first of them in `tools`. */
  at: number
  /** Their place in the body, with a comma before or after them if others stand beside them. */
  start: number
  end: number
}

/** Bodies above this are read whole: the tools are a small part of them, and a copy without the tools takes memory. */
const LARGEST_SHORTENED_BYTES = 256 * 1024
/** Versions of policies in use in an isolate. */
const KNOWN_VERSIONS = 500

const known = new WeakMap<Json, OwnTool>()
const encoder = new TextEncoder()

/** @param definition in the responses protocol. It must not change. */
export function ownTool(definition: Json): OwnTool {
  const tool = known.get(definition)
  if (tool) return tool
  const json = JSON.stringify(definition)
  const turn = encoder.encode(`{"model":"m","stream":true,"tools":[${json}],"input":[]}`)
  const made = {
    definition: JSON.parse(json) as Json,
    bytes: encoder.encode(json),
    outline: drained(responses.outline(turn)),
    cleanUnder: new BoundedMap<string, number>(KNOWN_VERSIONS),
  }
  known.set(definition, made)
  return made
}

/** The body of a turn without the tools of this service; null for one that has to be read whole. */
export function withoutOwnTools(body: Uint8Array, own: OwnTools | undefined): Uint8Array | null {
  if (!own || body.length > LARGEST_SHORTENED_BYTES) return null
  return joinBytes([body.subarray(0, own.start), body.subarray(own.end)])
}

/**
 * The bytes of the tools that the policies of a call inspect; null if they find anything, so that the tools have to be
 * inspected with the rest of the body.
 */
export function inspectedOfOwn({ tools }: OwnTools, policy: CallPolicy): number | null {
  let sum = 0
  for (const tool of tools) {
    const inspected = tool.cleanUnder.get(policy.version) ?? inspectedAlone(tool, policy)
    if (inspected === null) return null
    sum += inspected
  }
  return sum
}

function inspectedAlone(tool: OwnTool, policy: CallPolicy): number | null {
  const inspection = policy.trialInspection()
  try {
    const { edits, uninspectable } = drained(inspectRequest(tool.outline, responses, inspection))
    const findings = inspection.engine.findings()
    if (edits.length > 0 || uninspectable.size > 0 || findings.length > 0) return null
  } catch (error) {
    // The policy blocks what it finds.
    if (error instanceof ApiError) return null
    throw error
  }
  const { inspected } = inspection.counts
  tool.cleanUnder.set(policy.version, inspected)
  return inspected
}
