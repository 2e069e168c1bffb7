import { ApiError } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { Members } from '../item-types/item-type.ts'
import type { Owner } from '../types.ts'

/** A server-side tool: this service executes its calls, and not the caller. */
export interface HostedTool {
  /** `hosted`: of the gateway itself; `integration`: of a connected service, called over a connection of the user. */
  purpose: 'hosted' | 'integration'
  /** The function under which models call it. */
  definition: { type: 'function'; name: string; [member: string]: unknown }
  /** Type of the items of its calls. */
  itemType: string
  /** Members of these items that identify the tool. */
  members: Members
  /** Whether a call that may have been executed may be repeated after a restart, because the tool only reads. */
  repeatable: boolean
  /** Runs one call. An error it throws is the result for the model, unless the signal was aborted. */
  run(call: HostedCall, signal: AbortSignal): Promise<ToolResult>
}

export interface HostedCall {
  owner: Owner
  callId: string
  /** JSON, as the model wrote it. */
  arguments: string
}

/** The result of a call: the status of its item, and the members that it ends with, such as `output`. */
export interface ToolResult {
  status: 'completed' | 'failed'
  members: Members
}

/**
 * Runs a call. A failure is a result for the model, which may continue without the tool.
 * @param tool undefined for one that does not exist any more. @throws the reason of the signal once it was aborted.
 */
export async function runToolCall(
  tool: HostedTool | undefined,
  { owner, callId, arguments: json }: HostedCall,
  signal: AbortSignal,
): Promise<ToolResult> {
  signal.throwIfAborted()
  if (!tool) return failed('The tool is not available any more.')
  try {
    return await tool.run({ owner, callId, arguments: json }, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof ApiError) return failed(error.message)
    logEvent('error', 'tool_failed', { tool: tool.definition.name, error: errorText(error) })
    return failed('The tool failed.')
  }
}

const failed = (error: string): ToolResult => ({ status: 'failed', members: { error } })

/** A call as it is stored: before it is dispatched, while it runs, and with its result. */
export interface StoredToolCall {
  callId: string
  upstreamName: string
  arguments: string
  state: 'intended' | 'dispatched' | 'done'
  result: ToolResult | null
}
