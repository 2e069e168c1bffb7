import type { Members } from './types.ts'

/**
 * The result of a call: the status of its item, and the members that it ends with, such as `output`. The item's type makes
 * from them what the model gets (`toModel`).
 */
export interface ToolResult {
  status: 'completed' | 'failed'
  members: Members
}

/** A tool under the name that the caller gave it. */
export interface CalledTool {
  /** Type of the items of its calls. */
  itemType: string
  /** Members of these items that identify the tool, such as its name. */
  members: Members
}

/** A call that is to be executed. */
export interface IntendedCall {
  callId: string
  upstreamName: string
  /** JSON. */
  arguments: string
  /** Id of the request for approval that the caller has approved; absent for a call of the model. */
  approvalRequestId?: string
}

/** A call as it is stored: before it is dispatched, while it runs, and with its result. */
export interface StoredToolCall extends IntendedCall {
  state: 'intended' | 'dispatched' | 'done'
  result: ToolResult | null
  /** Id of its governed call. Stored before it is dispatched: a repetition after a restart opens, and pays, one call. */
  governedCallId?: string
}
