/** An event of a response stream as a client reads it. */
export interface StreamEvent {
  /** The `id:` line. */
  id?: string
  /** The `event:` line. */
  event: string
  data: Record<string, unknown>
}

export type Rule =
  | 'frame'
  | 'numbering'
  | 'lifecycle'
  | 'terminal'
  | 'error-event'
  | 'event-members'
  | 'response-members'
  | 'response-end'
  | 'output-index'
  | 'item-members'
  | 'item-identity'
  | 'item-order'
  | 'part-index'
  | 'part-order'
  | 'added-empty'
  | 'text'
  | 'annotations'
  | 'snapshot'

export type Report = (rule: Rule, detail: string) => void

type Kind = 'string' | 'index' | 'array' | 'object' | 'present'

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const KINDS: Record<Kind, (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  index: (value) => Number.isInteger(value) && Number(value) >= 0,
  array: Array.isArray,
  object: isRecord,
  present: (value) => value !== undefined,
}

const RESPONSE = { response: 'object' } as const
const OF_ITEM = { item_id: 'string', output_index: 'index' } as const
const OF_PART = { ...OF_ITEM, content_index: 'index' } as const
const OF_SUMMARY = { ...OF_ITEM, summary_index: 'index' } as const
const WHOLE_ITEM = { output_index: 'index', item: 'object' } as const

/** The events of this surface and what each needs (interface: Responses stream; official types of openai 7). */
const MEMBERS: Record<string, Record<string, Kind>> = {
  'response.created': RESPONSE,
  'response.in_progress': RESPONSE,
  'response.completed': RESPONSE,
  'response.failed': RESPONSE,
  error: { error: 'object', param: 'present' },
  'response.output_item.added': WHOLE_ITEM,
  'response.output_item.done': WHOLE_ITEM,
  'response.content_part.added': { ...OF_PART, part: 'object' },
  'response.content_part.done': { ...OF_PART, part: 'object' },
  'response.output_text.delta': { ...OF_PART, delta: 'string', logprobs: 'array' },
  'response.output_text.done': { ...OF_PART, text: 'string', logprobs: 'array' },
  'response.output_text.annotation.added': { ...OF_PART, annotation_index: 'index', annotation: 'object' },
  'response.refusal.delta': { ...OF_PART, delta: 'string' },
  'response.refusal.done': { ...OF_PART, refusal: 'string' },
  'response.reasoning_summary_part.added': { ...OF_SUMMARY, part: 'object' },
  'response.reasoning_summary_part.done': { ...OF_SUMMARY, part: 'object' },
  'response.reasoning_summary_text.delta': { ...OF_SUMMARY, delta: 'string' },
  'response.reasoning_summary_text.done': { ...OF_SUMMARY, text: 'string' },
  'response.function_call_arguments.delta': { ...OF_ITEM, delta: 'string' },
  'response.function_call_arguments.done': { ...OF_ITEM, arguments: 'string', name: 'string' },
  'response.custom_tool_call_input.delta': { ...OF_ITEM, delta: 'string' },
  'response.custom_tool_call_input.done': { ...OF_ITEM, input: 'string' },
  'response.mcp_call_arguments.delta': { ...OF_ITEM, delta: 'string' },
  'response.mcp_call_arguments.done': { ...OF_ITEM, arguments: 'string' },
  'response.service_call_arguments.delta': { ...OF_ITEM, delta: 'string' },
  'response.service_call_arguments.done': { ...OF_ITEM, arguments: 'string' },
  'response.compaction.compacting': OF_ITEM,
}

/** Members without which an event can still be followed. */
const BESIDES = ['logprobs', 'name', 'param']

/** @returns whether the event can be followed. */
export function checkMembers({ data }: StreamEvent, report: Report): boolean {
  const type = String(data.type)
  const members = Object.hasOwn(MEMBERS, type) ? MEMBERS[type] : undefined
  if (!members) report('event-members', `${type} is no event of this surface`)
  const wrong = Object.entries(members ?? {}).filter(([name, kind]) => !KINDS[kind](data[name]))
  for (const [name, kind] of wrong) report('event-members', `${type} needs ${name} (${kind})`)
  return members !== undefined && wrong.every(([name]) => BESIDES.includes(name))
}

const nullOr = (check: (value: unknown) => boolean) => (value: unknown) => value === null || check(value)
const number = (value: unknown) => typeof value === 'number'
const boolean = (value: unknown) => typeof value === 'boolean'
const { string, array, object } = KINDS

/** Members of every response object: null if they do not apply, never absent. */
const RESPONSE_MEMBERS: Record<string, (value: unknown) => boolean> = {
  id: string,
  object: (value) => value === 'response',
  created_at: number,
  completed_at: nullOr(number),
  status: (value) => ['in_progress', 'completed', 'incomplete', 'failed'].includes(String(value)),
  error: nullOr((value) => isRecord(value) && string(value.code) && string(value.message)),
  incomplete_details: nullOr((value) => isRecord(value) && string(value.reason)),
  background: boolean,
  conversation: nullOr((value) => isRecord(value) && string(value.id)),
  previous_response_id: nullOr(string),
  instructions: nullOr(string),
  model: string,
  output: array,
  output_text: string,
  tools: array,
  tool_choice: (value) => string(value) || object(value),
  parallel_tool_calls: boolean,
  max_output_tokens: nullOr(number),
  max_tool_calls: nullOr(number),
  text: (value) => isRecord(value) && isRecord(value.format),
  reasoning: nullOr((value) => isRecord(value) && 'effort' in value && 'summary' in value),
  truncation: (value) => value === 'auto' || value === 'disabled',
  temperature: number,
  top_p: number,
  top_logprobs: number,
  presence_penalty: number,
  frequency_penalty: number,
  service_tier: string,
  safety_identifier: nullOr(string),
  prompt_cache_key: nullOr(string),
  user: nullOr(string),
  store: boolean,
  metadata: object,
  usage: nullOr(isUsage),
}

function isUsage(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { input_tokens_details: input, output_tokens_details: output } = value
  const counts = [
    value.input_tokens,
    value.output_tokens,
    value.total_tokens,
    isRecord(input) ? input.cached_tokens : null,
    isRecord(output) ? output.reasoning_tokens : null,
  ]
  return (
    counts.every(number) && Number(value.input_tokens) + Number(value.output_tokens) === value.total_tokens
  )
}

/** Checks that a response object is whole; also for one that did not come from a stream. */
export function checkResponseObject(response: Record<string, unknown>, report: Report): void {
  for (const [name, check] of Object.entries(RESPONSE_MEMBERS)) {
    if (!check(response[name])) report('response-members', `${name} is ${JSON.stringify(response[name])}`)
  }
}

const CALLS = ['function_call', 'custom_tool_call']

/** Checks the members of every item. Callers answer to `call_id`, which differs from `id`. */
export function checkItem(item: Record<string, unknown>, report: Report): void {
  const names = ['id', 'type', 'status', ...(CALLS.includes(String(item.type)) ? ['call_id', 'name'] : [])]
  for (const name of names) {
    const filled = typeof item[name] === 'string' && item[name] !== ''
    if (!filled) report('item-members', `an item without ${name}`)
  }
  if (item.id !== undefined && item.id === item.call_id) report('item-members', 'call_id is the id')
  if (item.type === 'message') checkMessage(item, report)
  if (item.type === 'compaction' && typeof item.encrypted_content !== 'string') {
    report('item-members', 'a compaction without encrypted_content')
  }
  if (item.type === 'reasoning' && !Array.isArray(item.summary)) report('item-members', 'no summary')
}

function checkMessage({ role, content }: Record<string, unknown>, report: Report): void {
  if (role !== 'assistant') report('item-members', `a message of ${role}`)
  if (!Array.isArray(content)) report('item-members', 'a message without content')
  for (const part of Array.isArray(content) ? content : []) {
    if (part.type === 'output_text' && !Array.isArray(part.annotations)) {
      report('item-members', 'text without annotations')
    }
  }
}

/** Equality of JSON values, whatever the order of members. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((value, index) => sameJson(value, right[index]))
  }
  if (!isRecord(left) || !isRecord(right)) return left === right
  const names = Object.keys(left)
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && sameJson(left[name], right[name]))
  )
}
