import type { Direction } from '../../governance/dlp/types.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
import { scanJson } from '../../lib/json-scan.ts'
import type { JsonKind } from '../../lib/json-visitor.ts'
import type { ContextItem } from '../types.ts'
import { uncheckedItem } from './input-item.ts'
import type { ItemType, ModelItems } from './item-type.ts'

// Calls of server-side tools. The item of such a call also has its result.

/** Members of calls with their results. */
const RESULTS = new Set(['output', 'outputs', 'result', 'results', 'error'])

/** Directions of the texts of a call that has its result in the same item. */
export const hostedDirection = (member: string): Direction =>
  RESULTS.has(member) ? 'tool_result' : 'tool_arguments'

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
export const mcpCall = streamedCall('mcp', 'mcp_call_arguments')
/** A tool of this service: browser and files. */
export const serviceCall = streamedCall('svc', 'service_call_arguments')

const bareCall = (prefix: string): ItemType => ({
  prefix,
  read: uncheckedItem,
  direction: hostedDirection,
  toModel: 'nothing',
  events: { finalMembers: ['output', 'error'] },
})

export const shellCall = bareCall('sh')
export const webSearchCall = bareCall('ws')

/**
 * A server-side call in the form in which the model made it, and its result. Calls that a vendor executed have no `call_id`;
 * models do not get them, since the text after them has the result.
 */
function answeredCall({ callId, bytes }: ContextItem): ModelItems {
  const members = stringMembers(bytes)
  const { name, arguments: json, output = members.error, server_label: server } = members
  if (callId === null || !name || !json || !output) return { items: [], results: [] }
  const id = encoder.encode(JSON.stringify(callId))
  const namespace = server ? [encoder.encode(',"namespace":'), server] : []
  return {
    items: [joinBytes([CALL, id, NAME, name, ...namespace, ARGUMENTS, json, END])],
    results: [joinBytes([OUTPUT, id, RESULT, output, END])],
  }
}

/** The string members of the item itself, as JSON. */
function stringMembers(bytes: Uint8Array): Record<string, Uint8Array | undefined> {
  const members: Record<string, Uint8Array> = {}
  scanJson(bytes, {
    value(path, kind: JsonKind, start, end) {
      if (path.length === 1 && kind === 'string') members[String(path[0])] = bytes.subarray(start, end)
    },
  })
  return members
}

const encoder = new TextEncoder()
const CALL = encoder.encode('{"type":"function_call","call_id":')
const NAME = encoder.encode(',"name":')
const ARGUMENTS = encoder.encode(',"arguments":')
const OUTPUT = encoder.encode('{"type":"function_call_output","call_id":')
const RESULT = encoder.encode(',"output":')
const END = encoder.encode('}')
