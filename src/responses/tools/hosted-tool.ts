import type { ToolFamily, ToolRights } from '../../identity/tool-rights.ts'
import type { OfferedTool, SearchScope } from '../model/offered-tools.ts'
import type { ToolResult } from '../model/tool-result.ts'
import type { Members, Owner } from '../model/types.ts'

/** A server-side tool: this service executes its calls, and not the caller. */
export interface HostedTool extends ServiceToolForm {
  purpose: 'hosted'
  family: ToolFamily
  /** Members that describe what a call was to do, for one that failed before its tool answered. Never throws. */
  membersOf?: (arguments_: string) => Members
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

/** A tool of a connected service, called over a connection of the caller. */
export interface IntegrationTool extends ServiceToolForm {
  purpose: 'integration'
  /** An integration's tool has grants of its own. */
  family: null
  itemType: 'mcp_call'
  offered: OfferedTool
}

/** The search for tools that are not listed to the model. The tools that it finds are offered from the next turn on. */
export interface ToolSearch extends ServiceToolForm {
  purpose: 'search'
  family: 'platform'
  scope: SearchScope
}

/** A tool that this service executes: a model calls it as a function. */
export type ServiceTool = HostedTool | IntegrationTool | ToolSearch

interface ServiceToolForm {
  /** The function under which models call it. `parameters` is a JSON schema. */
  definition: { type: 'function'; name: string; [member: string]: unknown }
  /** Type of the items of its calls. */
  itemType: string
  /** Members of these items from their beginning, such as `name`. */
  members: Members
  /** Whether a call that may have been executed may be repeated after a restart, because the tool only reads. */
  repeatable: boolean
}

/** A call that is allowed: its arguments have passed the policies, its tool is switched on. */
export interface HostedCall {
  owner: Owner
  /** Id of the workspace: the conversation's id, or the response's id without a conversation. */
  workspaceId: string
  responseId: string
  /** Unique in its response. */
  callId: string
  /** JSON, as the model wrote it. */
  arguments: string
  rights: ToolRights
}
