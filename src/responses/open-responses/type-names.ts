/**
 * The types of items and events that Open Responses defines
 * (https://github.com/openresponses/openresponses, schema of 2026-04-24). All others need the prefix of their implementor
 * (https://www.openresponses.org/specification, Extending Open Responses). Only the wire has it: storage, policies and
 * models keep the own names.
 */

const PREFIX = 'headgate:'

const ITEM_TYPES: ReadonlySet<string> = new Set([
  'message',
  'function_call',
  'function_call_output',
  'reasoning',
  'compaction',
])

/**
 * Types of the official API on which clients act: they know them under no other name, and do not send others back
 * (@openai/agents).
 */
const OFFICIAL_ITEMS: ReadonlySet<string> = new Set([
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
])
const OFFICIAL_EVENTS: ReadonlySet<string> = new Set([
  'response.mcp_call_arguments.delta',
  'response.mcp_call_arguments.done',
])

const EVENT_TYPES: ReadonlySet<string> = new Set([
  'error',
  'response.created',
  'response.queued',
  'response.in_progress',
  'response.completed',
  'response.failed',
  'response.incomplete',
  'response.output_item.added',
  'response.output_item.done',
  'response.content_part.added',
  'response.content_part.done',
  'response.output_text.delta',
  'response.output_text.done',
  'response.output_text.annotation.added',
  'response.refusal.delta',
  'response.refusal.done',
  'response.function_call_arguments.delta',
  'response.function_call_arguments.done',
  'response.reasoning_summary_part.added',
  'response.reasoning_summary_part.done',
  'response.reasoning_summary_text.delta',
  'response.reasoning_summary_text.done',
  'response.reasoning.delta',
  'response.reasoning.done',
])

/** The type of an item on the wire, such as `headgate:shell_call`. */
export const itemTypeOnWire = (type: string): string =>
  ITEM_TYPES.has(type) || OFFICIAL_ITEMS.has(type) ? type : `${PREFIX}${type}`

/** The type of an event on the wire, such as `headgate:service_call_arguments.delta`. */
export const eventTypeOnWire = (type: string): string =>
  EVENT_TYPES.has(type) || OFFICIAL_EVENTS.has(type) ? type : `${PREFIX}${type.replace(/^response\./, '')}`

/** Types of tools and of choices of them. */
const TOOL_TYPES: ReadonlySet<string> = new Set(['function', 'allowed_tools'])

/** The own type of an item that a caller sends. */
export const ownItemType = (type: string): string => withoutPrefix(type, ITEM_TYPES)

/** The own type of a tool, or of a choice of tools, that a caller sends. */
export const ownToolType = (type: string): string => withoutPrefix(type, TOOL_TYPES)

/** A type of the specification has no prefix. */
function withoutPrefix(type: string, standard: ReadonlySet<string>): string {
  const own = type.startsWith(PREFIX) ? type.slice(PREFIX.length) : type
  return standard.has(own) ? type : own
}
