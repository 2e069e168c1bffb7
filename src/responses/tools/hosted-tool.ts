import type { ToolFamily, ToolRights } from '../../governance/tool-rights.ts'
import type { Members } from '../item-types/item-type.ts'
import type { Owner } from '../types.ts'

/** A server-side tool: this service executes its calls, and not the caller. */
export interface HostedTool {
  /** `hosted`: of the gateway itself; `integration`: of a connected service, called over a connection of the user. */
  purpose: 'hosted' | 'integration'
  /** Null for a tool of an integration, which has grants of its own. */
  family: ToolFamily | null
  /** The function under which models call it. `parameters` is a JSON schema. */
  definition: { type: 'function'; name: string; [member: string]: unknown }
  /** Type of the items of its calls. */
  itemType: string
  /** Members of these items from their beginning, such as `name`. */
  members: Members
  /** Members that describe what a call was to do, for one that failed before its tool answered. Never throws. */
  membersOf?: (arguments_: string) => Members
  /** Whether a call that may have been executed may be repeated after a restart, because the tool only reads. */
  repeatable: boolean
  /** Micro-credits that a completed call costs; none if left out. */
  price?: number
  /** Milliseconds that one call may take; it is aborted then. */
  timeLimit: number
  /**
   * Runs one call. An ApiError that it throws is the result for the model, by its message; any other error is logged and
   * reported without details.
   */
  run(call: HostedCall, signal: AbortSignal): Promise<ToolResult>
}

/** A call that is allowed: its arguments have passed the policies, its tool is switched on. */
export interface HostedCall {
  owner: Owner
  /** Of the files: the conversation's id, or that of a response where there is no conversation. */
  workspaceId: string
  responseId: string
  /** Unique in its response. */
  callId: string
  /** JSON, as the model wrote it. */
  arguments: string
  rights: ToolRights
}

/**
 * The result of a call: the status of its item, and the members that it ends with, such as `output`. The item's type makes
 * from them what the model gets (`toModel`).
 */
export interface ToolResult {
  status: 'completed' | 'failed'
  members: Members
}
