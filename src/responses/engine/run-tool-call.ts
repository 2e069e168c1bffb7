import { ApiError } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { HostedCall, HostedTool, ToolResult } from '../tools/hosted-tool.ts'

/**
 * Runs a call within the time of its tool. A failure is a result for the model, which may continue without the tool.
 * @param tool undefined for one that does not exist any more. @throws the reason of the signal once it was aborted.
 */
export async function runToolCall(
  tool: HostedTool | undefined,
  call: HostedCall,
  signal: AbortSignal,
): Promise<ToolResult> {
  signal.throwIfAborted()
  if (!tool) return failed('The tool is not available any more.')
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), tool.timeLimit)
  try {
    return await tool.run(call, AbortSignal.any([signal, limit.signal]))
  } catch (error) {
    signal.throwIfAborted()
    if (limit.signal.aborted) return failed(`The tool took longer than ${tool.timeLimit / 1_000} seconds.`)
    if (error instanceof ApiError) return failed(error.message)
    logEvent('error', 'tool_failed', { tool: tool.definition.name, error: errorText(error) })
    return failed('The tool failed.')
  } finally {
    clearTimeout(timer)
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
