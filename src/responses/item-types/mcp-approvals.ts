import { toolName } from '../../integrations/tool-name.ts'
import type { ContextItem } from '../types.ts'
import { hostedDirection } from './hosted-direction.ts'
import { uncheckedItem } from './input-item.ts'
import type { ItemScan } from './item-scan.ts'
import type { ItemType, ModelItems } from './item-type.ts'

// The caller's decision about a call of an integration's tool: the request for it, and the answer.

/**
 * A call that waits for the caller's approval. The model gets it as a call without an effect, so that it can make the same
 * call again once it is approved: the approval covers this tool with these arguments, once.
 */
export const mcpApprovalRequest: ItemType = {
  prefix: 'mcpr',
  read: uncheckedItem,
  direction: hostedDirection,
  toModel: pendingCall,
  events: { initialMembers: { arguments: '' }, finalMembers: ['arguments'] },
}

export const mcpApprovalResponse: ItemType = {
  prefix: 'mcpr',
  read: readDecision,
  direction: () => 'request',
  toModel: decision,
}

interface ApprovalRequest {
  id?: unknown
  name?: unknown
  server_label?: unknown
  arguments?: unknown
}

function pendingCall({ callId, bytes }: ContextItem): ModelItems {
  const { id, name, server_label: label, arguments: json } = parsed<ApprovalRequest>(bytes)
  if (callId === null || typeof name !== 'string' || typeof label !== 'string' || typeof json !== 'string') {
    return { items: [], results: [] }
  }
  const call = {
    type: 'function_call',
    call_id: callId,
    name: toolName(label, name),
    arguments: json,
  }
  const output = `The call was not made: it needs the approval of the user (approval request ${id}).`
  return {
    items: [encoded(call)],
    results: [encoded({ type: 'function_call_output', call_id: callId, output })],
  }
}

function readDecision(item: ItemScan) {
  if (item.kindOf('approval_request_id') !== 'string') item.fail('approval_request_id', 'must be a string')
  if (item.kindOf('approve') !== 'boolean') item.fail('approve', 'must be true or false')
  return {}
}

function decision({ bytes }: ContextItem): ModelItems {
  const { approval_request_id: id, approve, reason } = parsed<Record<string, unknown>>(bytes)
  const because = typeof reason === 'string' && reason !== '' ? ` Reason: ${reason}` : ''
  const text =
    approve === true
      ? `The user approved approval request ${id}. Make the same call again now, with the same arguments.${because}`
      : `The user denied approval request ${id}. Do not make this call.${because}`
  const message = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] }
  return { items: [encoded(message)], results: [] }
}

const parsed = <Item>(bytes: Uint8Array): Item => JSON.parse(decoder.decode(bytes)) as Item
const encoded = (item: object): Uint8Array => encoder.encode(JSON.stringify(item))

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
