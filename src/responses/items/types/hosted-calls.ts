import { toolName } from '../../../integrations/catalogue/tool-name.ts'
import { joinBytes } from '../../../lib/byte-edits.ts'
import { scanJson } from '../../../lib/json-scan.ts'
import type { JsonKind } from '../../../lib/json-visitor.ts'
import type { ContextItem } from '../../model/types.ts'
import { untrusted } from '../../model/untrusted.ts'
import { hostedDirection } from './hosted-direction.ts'
import { type InputItemForm, uncheckedItem } from './input-item.ts'
import type { ItemScan } from './item-scan.ts'
import type { ItemType, ModelItems } from './item-type.ts'
import { shellCallToModel } from './shell-call.ts'

// Calls of server-side tools. The item of such a call also has its result.

/** A call whose arguments are streamed. @param event the middle of its event types. */
const streamedCall = (prefix: string, event: string): ItemType => ({
  prefix,
  read: uncheckedItem,
  direction: hostedDirection,
  toModel: answeredCall,
  events: {
    finalMembers: ['output', 'error'],
    text: { member: 'arguments', delta: `response.${event}.delta`, done: `response.${event}.done` },
  },
})

/** A tool of a connected MCP server. */
export const mcpCall: ItemType = { ...streamedCall('mcp', 'mcp_call_arguments'), read: readMcpCall }
/** @openai/agents sends a call back without its output. */
const MCP_CALL_ID = /^mcp_[0-9A-Za-z]{22}$/

function readMcpCall(item: ItemScan): InputItemForm {
  const form = uncheckedItem(item)
  const id = item.textOf(item.members.get('id'))
  const hasResult = RESULT_MEMBERS.some((name) => (item.kindOf(name) ?? 'null') !== 'null')
  return !hasResult && id !== null && MCP_CALL_ID.test(id) ? { ...form, repeats: id } : form
}

const RESULT_MEMBERS = ['output', 'error']

/** A tool of this service: browser and files. */
export const serviceCall = streamedCall('svc', 'service_call_arguments')

/** The shell of this service. Models call it as a function. */
export const shellCall: ItemType = {
  prefix: 'sh',
  read: uncheckedItem,
  direction: hostedDirection,
  toModel: shellCallToModel,
  failedStatus: 'incomplete',
  events: { finalMembers: ['action', 'output', 'error'] },
}

/**
 * A server-side call in the form in which the model made it, and its result. Calls that a vendor executed have no `call_id`;
 * models do not get them, since the text after them has the result. A call whose client has not sent the result back was
 * made: the model must not make it again.
 */
function answeredCall({ callId, bytes }: ContextItem): ModelItems {
  const members = stringMembers(bytes)
  const { name: given, arguments: json, server_label: server } = members
  const name = given && server ? integrationToolName(server, given) : given
  const result = members.output ? markedOutput(name, members.output) : members.error
  const output = result ?? (isCompleted(members.status) ? NOT_SENT : undefined)
  if (callId === null || !name || !json || !output) return { items: [], results: [] }
  const id = encoder.encode(JSON.stringify(callId))
  return {
    items: [joinBytes([CALL, id, NAME, name, ARGUMENTS, json, END])],
    results: [joinBytes([OUTPUT, id, RESULT, output, END])],
  }
}

/** Items of a response that ended in the middle of a call have another status. */
const isCompleted = (status: Uint8Array | undefined): boolean =>
  status !== undefined && decoder.decode(status) === '"completed"'

/** The function under which models know a tool of an integration, as JSON. */
const integrationToolName = (server: Uint8Array, name: Uint8Array): Uint8Array => {
  const [label, tool] = [server, name].map((json) => String(JSON.parse(decoder.decode(json))))
  return encoder.encode(JSON.stringify(toolName(label as string, tool as string)))
}

/** Marks the output of a tool as untrusted. Images are parts in a list, and remain unchanged. */
function markedOutput(name: Uint8Array | undefined, output: Uint8Array): Uint8Array {
  const value: unknown = JSON.parse(decoder.decode(output))
  if (typeof value !== 'string') return output
  const tool: unknown = name && JSON.parse(decoder.decode(name))
  return encoder.encode(JSON.stringify(untrusted(`the tool ${tool}`, value)))
}

/** The string members of the item itself and a list of outputs, as JSON. */
function stringMembers(bytes: Uint8Array): Record<string, Uint8Array | undefined> {
  const members: Record<string, Uint8Array> = {}
  scanJson(bytes, {
    value(path, kind: JsonKind, start, end) {
      const [name] = path
      const isRead = kind === 'string' || (kind === 'array' && name === 'output')
      if (path.length === 1 && isRead) members[String(name)] = bytes.subarray(start, end)
    },
  })
  return members
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
const CALL = encoder.encode('{"type":"function_call","call_id":')
const NAME = encoder.encode(',"name":')
const ARGUMENTS = encoder.encode(',"arguments":')
const OUTPUT = encoder.encode('{"type":"function_call_output","call_id":')
const RESULT = encoder.encode(',"output":')
const END = encoder.encode('}')
const NOT_SENT = encoder.encode('"The call was made. Its result is not in the history that was sent."')
