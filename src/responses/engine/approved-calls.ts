import { newId } from '../../lib/ids.ts'
import type { ResponseEmitter } from '../emitter/emitter.ts'
import type { ApprovedCall } from '../model/offered-tools.ts'
import type { IntendedCall } from '../model/tool-result.ts'
import type { ToolRules } from '../tools/tool-rules.ts'

/**
 * Adds the calls that a request approves to the output of its response, each with the id of its request for approval.
 * @returns the calls, to be stored and executed.
 */
export function addApprovedCalls(
  emitter: ResponseEmitter,
  tools: ToolRules,
  approved: readonly ApprovedCall[],
): IntendedCall[] {
  return approved.map(({ requestId, name, arguments: json }) => {
    const callId = newId('call')
    const { members } = tools.hosted.get(name) ?? {}
    const own = { ...members, approval_request_id: requestId }
    emitter.addCall({ callId, itemType: 'mcp_call', members: own, arguments: json })
    return { callId, upstreamName: name, arguments: json, approvalRequestId: requestId }
  })
}
