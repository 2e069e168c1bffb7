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
import { errorCodeOf } from './governed-call.ts'

/** What a tool gives back: members that are JSON. */
export interface ToolAnswer {
  status: 'completed' | 'failed'
  members: Record<string, unknown>
}

/** Content of a result that is not text, such as an image. */
export interface OpaqueContent {
  /** For the caller, such as `image`. */
  kind: string
  /** Its place in the result: a string that is not inspected if the content may pass; null for content without one. */
  path: JsonPath | null
}

/** How the result of a tool is inspected. */
export interface ResultRules {
  /** The tool, for the log. */
  tool: string
  /** Bytes of a result as JSON; `MOST_RESULT_BYTES` where it is left out. */
  longestResult: number | undefined
  /** Finds content that no policy can read. None where it is left out. */
  opaqueContent: ((members: ToolAnswer['members']) => readonly OpaqueContent[]) | undefined
}

/** Bytes of a result as JSON. */
const MOST_RESULT_BYTES = 1024 * 1024

export interface Executed {
  answer: ToolAnswer
  error: ApiError | null
  /** A provider charges for an answer, whatever becomes of it, and possibly for a request that was given up. */
  isCharged: boolean
  outcome: Pick<CallOutcome, 'status' | 'errorCode' | 'response'>
}

export const toolFailed = (message: string, code: string) => new ApiError('internal', message, { code })

/** The answer as the policies let it pass, in slices. What is blocked is withheld from the model and from the owner. */
export function* inspectedAnswer(
  policy: CallPolicy,
  rules: ResultRules,
  { status, members }: ToolAnswer,
): Slices<InspectedAnswer> {
  const inspection = policy.responseInspection()
  const source = encoder.encode(JSON.stringify(members))
  const longest = rules.longestResult ?? MOST_RESULT_BYTES
  if (source.length > longest) {
    const message = `The tool was executed, but its result is longer than ${longest} bytes. Ask for less of it.`
    return failed(toolFailed(message, 'tool_result_too_large'))
  }
  const opaque = rules.opaqueContent?.(members) ?? []
  const [uninspectable] = policy.blocksUninspectable('tool_result') ? opaque : []
  if (uninspectable) return withheld(uninspectableContent(uninspectable.kind), source.length)
  try {
    const { pieces } = yield* inspectJson(inspection, source, 'tool_result', isAtOneOf(opaque))
    const passed = JSON.parse(decoder.decode(joinBytes(pieces))) as ToolAnswer['members']
    const code = status === 'failed' ? 'tool_failed' : null
    return {
      answer: { status, members: passed },
      error: null,
      outcome: { status: 200, errorCode: code, response: inspection.counts },
    }
  } catch (error) {
    if (error instanceof ApiError && error.kind !== 'internal') return withheld(error, source.length)
    logEvent('error', 'dlp_failed', { tool: rules.tool, error: errorText(error) })
    return withheld(policyNotApplied(), source.length)
  }
}

type InspectedAnswer = Omit<Executed, 'isCharged'>

/** Interface, Errors, MCP gateway. */
const policyNotApplied = () =>
  toolFailed('The data-loss prevention policy could not be applied to the result.', 'dlp_unavailable')

/** Interface, Errors, MCP gateway. */
const uninspectableContent = (contentKind: string) =>
  new ApiError('forbidden', `It has content that cannot be inspected (${contentKind}).`, {
    code: 'dlp_uninspectable_content',
    details: { contentKind },
  })

/** Whether a place of the result is that of content which is not text. */
function isAtOneOf(opaque: readonly OpaqueContent[]): (path: JsonPath) => boolean {
  if (opaque.length === 0) return () => false
  const places = new Set(opaque.map(({ path }) => JSON.stringify(path)))
  return (path) => places.has(JSON.stringify(path))
}

function withheld(error: ApiError, bytes: number): InspectedAnswer {
  const { outcome } = failed(error)
  return {
    answer: failedAnswer(`The result was withheld. ${error.message}`),
    error,
    outcome: { ...outcome, response: withheldBytes(bytes) },
  }
}

const withheldBytes = (bytes: number): InspectionCounts => ({
  inspected: bytes,
  uninspected: 0,
  released: 0,
  withheld: bytes,
})

export const failedAnswer = (error: string): ToolAnswer => ({ status: 'failed', members: { error } })

export const failed = (error: ApiError, status: number = error.status): Executed => ({
  answer: failedAnswer(error.message),
  error,
  isCharged: false,
  outcome: { status, errorCode: errorCodeOf(error), response: null },
})

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
