/** The answer of a tool, and what the policies of its caller let pass of it. */

import { inspectJson } from '../dlp/json-inspection.ts'
import type { CallPolicy } from '../dlp/policy/call-policy.ts'
import type { CallOutcome } from '../ledger/audit-record.ts'
import { ApiError } from '../lib/api-error.ts'
import { joinBytes } from '../lib/byte-edits.ts'
import type { JsonPath } from '../lib/json-visitor.ts'
import { errorText, logEvent } from '../lib/log.ts'
import type { Slices } from '../lib/slices.ts'
import type { InspectionCounts } from '../wire/records.ts'
import { refusedByPolicy, renderFailure, type ToolFailure } from './tool-failure.ts'

/** The answer of a tool. */
export interface ToolAnswer<Beside = undefined> {
  status: 'completed' | 'failed'
  /** JSON. */
  members: Record<string, unknown>
  /** Data for the holder of the call: policies do not inspect it, and it is not part of the result. */
  beside?: Beside
}

/** The end of a call: the answer of its tool, as far as the policies let it pass, or a failure. */
export type ToolEnd<Beside = undefined> = { kind: 'answered'; answer: ToolAnswer<Beside> } | ToolFailure

/** Content of a result that is not text, such as an image. */
export interface OpaqueContent {
  /** The kind of content as shown to the caller, such as `image`. */
  kind: string
  /** Its place in the result: a string that is not inspected if the content may pass; null for content without one. */
  path: JsonPath | null
}

/** How the result of a tool is inspected. */
interface ResultRules {
  /** The tool, for the log. */
  tool: string
  /** Bytes of a result as JSON; `MOST_RESULT_BYTES` where it is left out. */
  longestResult: number | undefined
  /** Finds content that no policy can inspect. When left out, the result has none. */
  opaqueContent: ((members: ToolAnswer['members']) => readonly OpaqueContent[]) | undefined
}

/** Bytes of a result as JSON. */
const MOST_RESULT_BYTES = 1024 * 1024

export interface Executed<Beside> {
  end: ToolEnd<Beside>
  /** A provider charges for an answer, whatever becomes of it, and possibly for a request that was given up. */
  isCharged: boolean
  outcome: Pick<CallOutcome, 'status' | 'errorCode' | 'response'>
}

/** The answer after the policies were applied, in slices. Blocked content is withheld from the model and from the owner. */
export function* inspectedAnswer<Beside>(
  policy: CallPolicy,
  rules: ResultRules,
  answer: ToolAnswer<Beside>,
): Slices<Executed<Beside>> {
  const { status, members } = answer
  const isCharged = status === 'completed'
  const inspection = policy.responseInspection()
  const source = encoder.encode(JSON.stringify(members))
  const longest = rules.longestResult ?? MOST_RESULT_BYTES
  const withheld = (failure: ToolFailure): Executed<Beside> => {
    const { end, outcome } = failed(failure)
    return { end, isCharged, outcome: { ...outcome, response: withheldBytes(source.length) } }
  }
  if (source.length > longest) return { ...failed({ kind: 'result_too_large', bytes: longest }), isCharged }
  const opaque = rules.opaqueContent?.(members) ?? []
  const [uninspectable] = policy.blocksUninspectable('tool_result') ? opaque : []
  if (uninspectable) return withheld({ kind: 'dlp_uninspectable_content', contentKind: uninspectable.kind })
  try {
    const { pieces } = yield* inspectJson(inspection, source, 'tool_result', isAtOneOf(opaque))
    const passed = JSON.parse(decoder.decode(joinBytes(pieces))) as ToolAnswer['members']
    return {
      end: { kind: 'answered', answer: { ...answer, members: passed } },
      isCharged,
      outcome: {
        status: 200,
        errorCode: status === 'failed' ? 'tool_failed' : null,
        response: inspection.counts,
      },
    }
  } catch (error) {
    if (error instanceof ApiError && error.kind !== 'internal') {
      return withheld(refusedByPolicy('result', error))
    }
    logEvent('error', 'dlp_failed', { tool: rules.tool, error: errorText(error) })
    return withheld({ kind: 'dlp_unavailable', part: 'result' })
  }
}

/** Whether a place of the result holds content that is not text. */
function isAtOneOf(opaque: readonly OpaqueContent[]): (path: JsonPath) => boolean {
  if (opaque.length === 0) return () => false
  const places = new Set(opaque.map(({ path }) => JSON.stringify(path)))
  return (path) => places.has(JSON.stringify(path))
}

const withheldBytes = (bytes: number): InspectionCounts => ({
  inspected: bytes,
  uninspected: 0,
  released: 0,
  withheld: bytes,
})

/** The end of a call without an answer. Whether the tool was executed is unknown when it was aborted or timed out. */
export function failed(failure: ToolFailure): Executed<never> {
  const { status, errorCode } = renderFailure(failure)
  const isCharged = failure.kind === 'aborted' || failure.kind === 'timed_out'
  return { end: failure, isCharged, outcome: { status, errorCode, response: null } }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
