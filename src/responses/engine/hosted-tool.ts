import { ApiError } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { Members } from '../item-types/item-type.ts'
import type { Owner } from '../types.ts'

/** A tool that runs on this side, and not at the caller. */
export interface HostedTool {
  /** `hosted`: of the gateway itself; `integration`: of a connected service, called with a connection of the user. */
  purpose: 'hosted' | 'integration'
  /** The function that models are offered for it. Its name is the name that they call. */
  definition: { type: 'function'; name: string; [member: string]: unknown }
  /** Type of the items that its calls become, and what these say of the tool. */
  itemType: string
  members: Members
  /** Whether a call may be made again where it is not known if it was made: it only reads. */
  repeatable: boolean
  /** Runs one call. What it throws is told to the model as a failure, unless the signal has fired. */
  run(call: HostedCall, signal: AbortSignal): Promise<ToolResult>
}

export interface HostedCall {
  owner: Owner
  callId: string
  /** JSON, as the model wrote it. */
  arguments: string
}

/** What a call came to. `members` of the item are those of its end, such as `output`. */
export interface ToolResult {
  status: 'completed' | 'failed'
  members: Members
}

/**
 * Runs a call. A failure is told to the model, which may go on without it.
 * @param tool undefined for one that is not there any more. @throws the reason of the signal once it has fired.
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

/** A call as it is stored: before it is dispatched, while it is, and with its result. */
export interface StoredToolCall {
  callId: string
  upstreamName: string
  arguments: string
  state: 'intended' | 'dispatched' | 'done'
  result: ToolResult | null
}
