/** Why a tool call has no answer of its tool, and how each surface renders that. */

import { DLP_BLOCKED } from '../dlp/policy/actions.ts'
import type { ApiError } from '../lib/api-error.ts'
import { errorCodeOf } from './governed-call.ts'

/** The part of a call that a policy was applied to. */
type InspectedPart = 'arguments' | 'result'

/** Why a tool call has no answer of its tool: it was not executed, or its result does not pass. */
export type ToolFailure =
  /** A limit, the credits, or a right of the surface. */
  | { kind: 'refused'; error: ApiError }
  /** The rights of the caller exclude the tool. */
  | { kind: 'tool_forbidden'; tool: string }
  /** This caller has no such tool, or the tool's definition has changed. */
  | { kind: 'tool_unknown' }
  | { kind: 'tool_disabled' }
  | { kind: 'approval_required' }
  /** Another call was made for its approval. */
  | { kind: 'approval_used' }
  | { kind: 'connection_required'; message: string }
  /** The explicit connection does not exist for this caller, or belongs to another integration. */
  | { kind: 'connection_unknown'; message: string }
  | { kind: 'connection_ambiguous'; message: string; candidates: readonly Candidate[] }
  /** `integrationId`: the public id. */
  | { kind: 'credentials_unavailable'; message: string; integrationId: string; hint: string }
  | { kind: 'dlp_blocked'; part: InspectedPart; error: ApiError }
  /** A policy could not be applied to this part, or could not be read: null. */
  | { kind: 'dlp_unavailable'; part: InspectedPart | null }
  | { kind: 'dlp_uninspectable_content'; contentKind: string }
  | { kind: 'result_too_large'; bytes: number }
  | { kind: 'timed_out'; milliseconds: number }
  /** The caller has left. */
  | { kind: 'aborted' }
  /** The tool threw what is no answer for a caller. */
  | { kind: 'tool_broken' }
  /** The tool states why. `retryable`: nothing was executed. */
  | { kind: 'failed'; error: ApiError; retryable: boolean }

/** A connection of which the caller has to choose one. */
interface Candidate {
  id: string
  displayName: string
}

/** A failure on each surface. */
interface RenderedFailure {
  /** Status and error code of the audit record. */
  status: number
  errorCode: string
  /** The message for clients of MCP. */
  message: string
  /** The message for a model, as the error of the item of its call. */
  forModel: string
  mcp: McpForm
}

/** The form of a failure for clients of MCP (interface: Errors, MCP gateway). */
type McpForm =
  /** The error of the HTTP request. */
  | { form: 'http_error'; error: ApiError }
  | { form: 'unknown_tool' }
  | { form: 'disabled_tool' }
  /** A JSON-RPC error, whose reason is the error code. */
  | { form: 'server_error'; data?: Record<string, unknown> }
  /** A CallToolResult. @param code in place of the error code. @param more members of its error. */
  | { form: 'tool_error'; code?: string; more?: Record<string, unknown> }

type Kind = ToolFailure['kind']
type FailureOf<Of extends Kind> = Extract<ToolFailure, { kind: Of }>
/** `forModel`: the message where it is left out. */
type Row = Omit<RenderedFailure, 'forModel'> & { forModel?: string }
type Rows = { [Of in Kind]: (failure: FailureOf<Of>) => Row }

/** The audit code of a tool that is not one of the caller's. */
const TOOL_NOT_ALLOWED = 'tool_not_allowed'

const UNKNOWN_TOOL: McpForm = { form: 'unknown_tool' }
const SERVER_ERROR: McpForm = { form: 'server_error' }
const TOOL_ERROR: McpForm = { form: 'tool_error' }

const ROWS: Rows = {
  refused: ({ error }) => ({ ...ofError(error), mcp: { form: 'http_error', error } }),
  tool_forbidden: ({ tool }) => ({
    status: 403,
    errorCode: TOOL_NOT_ALLOWED,
    message: `The tool ${tool} is switched off for this caller.`,
    mcp: UNKNOWN_TOOL,
  }),
  tool_unknown: () => ({
    status: 400,
    errorCode: TOOL_NOT_ALLOWED,
    message: 'The tool is not available any more.',
    mcp: UNKNOWN_TOOL,
  }),
  tool_disabled: () => ({
    status: 400,
    errorCode: 'tool_disabled',
    message: 'The tool is switched off.',
    mcp: { form: 'disabled_tool' },
  }),
  approval_required: () => ({
    status: 403,
    errorCode: 'approval_required',
    message: 'The call was not made: it needs an approval of the user, and has none.',
    mcp: TOOL_ERROR,
  }),
  approval_used: () => ({
    status: 403,
    errorCode: 'approval_used',
    message: 'The call was not made: its approval was used for another call.',
    mcp: TOOL_ERROR,
  }),
  connection_required: ({ message }) => ({
    status: 400,
    errorCode: 'connection_required',
    message,
    mcp: TOOL_ERROR,
  }),
  connection_unknown: ({ message }) => ({
    status: 400,
    errorCode: 'connection_unknown',
    message,
    mcp: { form: 'tool_error', code: 'not_found' },
  }),
  connection_ambiguous: ({ message, candidates }) => ({
    status: 400,
    errorCode: 'connection_ambiguous',
    message: `${message} Name one by platform_execute_tool, or set a default.`,
    forModel: `${message} The user has to choose one of: ${candidates.map(namedCandidate).join(', ')}.`,
    mcp: { form: 'tool_error', more: { connections: candidates.map(presentCandidate) } },
  }),
  credentials_unavailable: ({ message, integrationId, hint }) => ({
    status: 502,
    errorCode: 'credentials_unavailable',
    message,
    forModel: `${message} ${hint}`,
    mcp: { form: 'server_error', data: { integrationId, hint } },
  }),
  dlp_blocked: ({ part, error }) => ({
    ...ofError(error),
    ...(part === 'result' && withheld(error.message)),
    mcp: SERVER_ERROR,
  }),
  dlp_unavailable({ part }) {
    const message = `The data-loss prevention policy could not be applied${part === null ? '' : ` to the ${part}`}.`
    return {
      status: 500,
      errorCode: 'dlp_unavailable',
      message,
      ...(part === 'result' && withheld(message)),
      mcp: SERVER_ERROR,
    }
  },
  dlp_uninspectable_content({ contentKind }) {
    const message = `It has content that cannot be inspected (${contentKind}).`
    return {
      status: 403,
      errorCode: 'dlp_uninspectable_content',
      message,
      ...withheld(message),
      mcp: { form: 'server_error', data: { contentKind } },
    }
  },
  result_too_large: ({ bytes }) => ({
    status: 500,
    errorCode: 'tool_result_too_large',
    message: `The tool was executed, but its result is longer than ${bytes} bytes. Ask for less of it.`,
    mcp: TOOL_ERROR,
  }),
  timed_out: ({ milliseconds }) => ({
    status: 500,
    errorCode: 'tool_timed_out',
    message: `The tool took longer than ${milliseconds / 1_000} seconds. It may have been executed.`,
    mcp: TOOL_ERROR,
  }),
  aborted: () => ({
    status: 499,
    errorCode: 'client_left',
    message: 'The call was aborted.',
    mcp: TOOL_ERROR,
  }),
  tool_broken: () => ({
    status: 500,
    errorCode: 'tool_failed',
    message: 'The tool failed.',
    mcp: TOOL_ERROR,
  }),
  failed: ({ error, retryable }) => ({
    ...ofError(error),
    mcp: { form: 'tool_error', more: { retryable } },
  }),
}

/** A failure as records, models and clients of MCP get it. */
export function renderFailure(failure: ToolFailure): RenderedFailure {
  const render = ROWS[failure.kind] as (failure: ToolFailure) => Row
  const row = render(failure)
  return { ...row, forModel: row.forModel ?? row.message }
}

/** The failure of a tool that threw an error which its caller may read. */
export const failureOf = (error: ApiError): ToolFailure =>
  error.kind === 'rate_limited' || error.kind === 'forbidden'
    ? { kind: 'refused', error }
    : { kind: 'failed', error, retryable: false }

/** The failure of a call whose arguments or result the policies have refused. */
export const refusedByPolicy = (part: InspectedPart, error: ApiError): ToolFailure =>
  error.code === DLP_BLOCKED ? { kind: 'dlp_blocked', part, error } : failureOf(error)

const ofError = (error: ApiError) => ({
  status: error.status,
  errorCode: errorCodeOf(error),
  message: error.message,
})

/** The model has to be told that the tool was executed. */
const withheld = (message: string) => ({ forModel: `The result was withheld. ${message}` })

const namedCandidate = ({ id, displayName }: Candidate) => `${displayName} (${id})`
const presentCandidate = ({ id, displayName }: Candidate) => ({ id, display_name: displayName })
