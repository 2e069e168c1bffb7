import { toolName } from '../../../integrations/catalogue/tool-name.ts'
import { hasApprovalShape } from '../../model/response-ids.ts'
import type { ContextItem } from '../../model/types.ts'
import { hostedDirection } from './hosted-direction.ts'
import { type InputItemForm, uncheckedItem } from './input-item.ts'
import type { ItemScan } from './item-scan.ts'
import type { ItemType, ModelItems } from './item-type.ts'

// The caller's decision about a call of an integration's tool: the request for it, and the answer.
// `context/decided-approvals` converts a decided request for a model.

/** A call that waits for the caller's approval. The model gets it as a call without an effect. */
export const mcpApprovalRequest: ItemType = {
  prefix: 'mcpr',
  read: readRequest,
  direction: hostedDirection,
  toModel: pendingCall,
  events: {},
}

/** A decision. The model gets one that came after later turns; others are in the call that they decide. */
export const mcpApprovalResponse: ItemType = {
  prefix: 'mcpr',
  read: readDecision,
  direction: () => 'request',
  toModel: lateDenial,
}

interface ApprovalRequest {
  id: string
  approval_request_id?: unknown
  name?: unknown
  server_label?: unknown
  arguments?: unknown
}

/** The parts of a request for approval; null for one that lacks any, from the history of another service. */
export interface ReadRequest {
  /** The id under which the request is decided. For a copy that a client sent back, the id of the original. */
  requestId: string
  server: string
  tool: string
  /** JSON. */
  arguments: string
}

export function readApprovalRequest({ bytes }: Pick<ContextItem, 'bytes'>): ReadRequest | null {
  const { id, approval_request_id: original, name, server_label: server, arguments: json } = requestOf(bytes)
  if (typeof name !== 'string' || typeof server !== 'string' || typeof json !== 'string') return null
  return { requestId: typeof original === 'string' ? original : id, server, tool: name, arguments: json }
}

/** A decision; null for one without a request. */
export interface ReadDecision {
  requestId: string
  approve: boolean
  reason: string | null
}

export function readApprovalDecision({ bytes }: Pick<ContextItem, 'bytes'>): ReadDecision | null {
  const { approval_request_id: requestId, approve, reason } = parsed<Record<string, unknown>>(bytes)
  if (typeof requestId !== 'string') return null
  return {
    requestId,
    approve: approve === true,
    reason: typeof reason === 'string' && reason !== '' ? reason : null,
  }
}

/** A request that was not carried out, as a call without an effect. @param output why not. */
export function callWithoutEffect({ callId, bytes }: ContextItem, output: string): ModelItems {
  const request = readApprovalRequest({ bytes })
  if (request === null) return { items: [], results: [] }
  // Clients with the official types do not send the id of the call.
  const call_id = callId ?? request.requestId
  const name = toolName(request.server, request.tool)
  return {
    items: [encoded({ type: 'function_call', call_id, name, arguments: request.arguments })],
    results: [encoded({ type: 'function_call_output', call_id, output })],
  }
}

/** The text for a model in place of the result of a denied call. */
export const denialOf = ({ reason }: ReadDecision): string =>
  `The call was not made: the user denied it.${because(reason)}`

const because = (reason: string | null): string => (reason === null ? '' : ` Reason: ${reason}`)

function pendingCall(item: ContextItem): ModelItems {
  const requestId = readApprovalRequest(item)?.requestId
  return callWithoutEffect(item, `The call was not made: it needs the approval of the user (${requestId}).`)
}

/** Clients that store nothing here send a request back with its decision. It keeps its id for that in another member. */
function readRequest(item: ItemScan): InputItemForm {
  const form = { ...uncheckedItem(item), dropped: new Set(['approval_request_id']) }
  const id = item.textOf(item.members.get('id'))
  if (id === null || !hasApprovalShape(id)) return form
  return { ...form, repeats: id, added: [`"approval_request_id":${JSON.stringify(id)}`] }
}

function readDecision(item: ItemScan): InputItemForm {
  if (item.kindOf('approval_request_id') !== 'string') item.fail('approval_request_id', 'must be a string')
  if (item.kindOf('approve') !== 'boolean') item.fail('approve', 'must be true or false')
  return {}
}

function lateDenial({ bytes }: ContextItem): ModelItems {
  const decision = readApprovalDecision({ bytes })
  if (decision === null || decision.approve) return { items: [], results: [] }
  const { requestId, reason } = decision
  const text = `The user denied the call that needed an approval (${requestId}). Do not make it.${because(reason)}`
  const message = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] }
  return { items: [encoded(message)], results: [] }
}

const requestOf = (bytes: Uint8Array): ApprovalRequest => parsed<ApprovalRequest>(bytes)
const parsed = <Item>(bytes: Uint8Array): Item => JSON.parse(decoder.decode(bytes)) as Item
const encoded = (item: object): Uint8Array => encoder.encode(JSON.stringify(item))

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
