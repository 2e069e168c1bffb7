import type { Direction } from '../../governance/dlp/types.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
import { type JsonKind, scanJson } from '../../lib/json-scan.ts'
import type { ContextItem } from '../types.ts'
import { keptItem } from './given-item.ts'
import type { ItemType, ModelItems } from './item-type.ts'

// Calls of tools that run on this side: the item of the call holds its result too.

/** Members of calls that hold what came of them. */
const RESULTS = new Set(['output', 'outputs', 'result', 'results', 'error'])

/** A call of a hosted tool, in whatever form its provider gives it: what is done, and what came of it. */
export const hostedDirection = (member: string): Direction =>
  RESULTS.has(member) ? 'tool_result' : 'tool_arguments'

/** A call whose arguments are told as they are written. @param event the part of its event types that names it. */
const arguedCall = (prefix: string, event: string): ItemType => ({
  prefix,
  read: keptItem,
  direction: hostedDirection,
  toModel: answeredCall,
  events: {
    late: ['output', 'error'],
    text: { member: 'arguments', delta: `response.${event}.delta`, done: `response.${event}.done` },
  },
})

/** A tool of a connected MCP server. */
export const mcpCall = arguedCall('mcp', 'mcp_call_arguments')
/** A tool of this service: browser and files. */
export const serviceCall = arguedCall('svc', 'service_call_arguments')

const bareCall = (prefix: string): ItemType => ({
  prefix,
  read: keptItem,
  direction: hostedDirection,
  toModel: 'nothing',
  events: { late: ['output', 'error'] },
})

export const shellCall = bareCall('sh')
export const webSearchCall = bareCall('ws')

/**
 * A call that ran here as the model made it, with its result. Calls that ran at another provider have no `call_id`, and
 * what came of them stands in the text after them.
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

/** Of the item itself, as JSON. */
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
