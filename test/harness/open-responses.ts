import * as z from 'zod'
import type { StreamEvent } from './conformance-rules.ts'
import { readResponseStream } from './response-stream-text.ts'

// Requirements of Open Responses on responses, items and events (https://www.openresponses.org/specification, schema of
// 2026-04-24). Written from the specification, without knowledge of the code under test. Members that are not listed
// are extensions, which the specification allows.

const text = z.string()
const index = z.int().min(0)
const names = <const Names extends readonly string[]>(...values: Names) => z.enum(values)

const urlCitation = z.object({
  type: z.literal('url_citation'),
  url: text,
  title: text,
  start_index: index,
  end_index: index,
})
const outputText = z.object({
  type: z.literal('output_text'),
  text,
  annotations: z.array(urlCitation),
  logprobs: z.array(z.object({ token: text, logprob: z.number() })).optional(),
})
const textPart = (type: string) => z.object({ type: z.literal(type), text })
const refusal = z.object({ type: z.literal('refusal'), refusal: text })
const inputImage = z.object({
  type: z.literal('input_image'),
  image_url: text.nullable(),
  detail: names('low', 'high', 'auto'),
})
const inputFile = z.object({
  type: z.literal('input_file'),
  filename: text.optional(),
  file_url: text.optional(),
})
const part = z.union([
  outputText,
  refusal,
  inputImage,
  inputFile,
  ...['input_text', 'text', 'summary_text', 'reasoning_text'].map(textPart),
])

const status = names('in_progress', 'completed', 'incomplete')
const standardItem = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('message'),
    id: text.min(1),
    status,
    role: names('user', 'assistant', 'system', 'developer'),
    content: z.array(part),
    phase: names('commentary', 'final_answer').optional(),
  }),
  z.object({
    type: z.literal('function_call'),
    id: text.min(1),
    call_id: text.min(1),
    name: text,
    arguments: text,
    status,
  }),
  z.object({
    type: z.literal('function_call_output'),
    id: text.min(1),
    call_id: text.min(1),
    output: z.union([text, z.array(part)]),
    status,
  }),
  z.object({
    type: z.literal('reasoning'),
    id: text.min(1),
    status,
    summary: z.array(part),
    content: z.array(part).optional(),
    encrypted_content: text.optional(),
  }),
  z.object({ type: z.literal('compaction'), id: text.min(1), encrypted_content: text }),
])
/** Items of the official API on which clients act. They have no prefix, since clients know them under no other name. */
const OFFICIAL = /^mcp_(call|approval_request|approval_response)$/
const extensionItem = z.object({
  type: z.union([text.regex(/^headgate:[a-z_]+$/), text.regex(OFFICIAL)]),
  id: text.min(1),
  status: text.min(1),
})
/** An item, as in responses and lists. */
export const openResponsesItemSchema = z.union([standardItem, extensionItem])

const functionTool = z.object({
  type: z.literal('function'),
  name: text,
  description: text.nullable(),
  parameters: z.record(text, z.unknown()).nullable(),
  strict: z.boolean(),
})
const mode = names('none', 'auto', 'required')
const functionChoice = z.object({ type: z.literal('function'), name: text.optional() })
const toolChoice = z.union([
  mode,
  functionChoice,
  z.object({ type: z.literal('allowed_tools'), tools: z.array(functionChoice), mode }),
])
const textSettings = z.object({
  format: z.discriminatedUnion('type', [
    z.object({ type: z.literal('text') }),
    z.object({ type: z.literal('json_object') }),
    z.object({
      type: z.literal('json_schema'),
      name: text,
      description: text.nullable(),
      schema: z.null(),
      strict: z.boolean(),
    }),
  ]),
  verbosity: names('low', 'medium', 'high').optional(),
})
const usage = z.object({
  input_tokens: index,
  output_tokens: index,
  total_tokens: index,
  input_tokens_details: z.object({ cached_tokens: index }),
  output_tokens_details: z.object({ reasoning_tokens: index }),
})

/** A whole response: every member is present. */
export const openResponsesSchema = z.object({
  id: text.min(1),
  object: z.literal('response'),
  created_at: z.int(),
  completed_at: z.int().nullable(),
  status: names('queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'),
  incomplete_details: z.object({ reason: text }).nullable(),
  model: text,
  previous_response_id: text.nullable(),
  instructions: text.nullable(),
  output: z.array(openResponsesItemSchema),
  error: z.object({ code: text, message: text }).nullable(),
  tools: z.array(functionTool),
  tool_choice: toolChoice,
  truncation: names('auto', 'disabled'),
  parallel_tool_calls: z.boolean(),
  text: textSettings,
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.int(),
  temperature: z.number(),
  reasoning: z
    .object({
      effort: names('none', 'low', 'medium', 'high', 'xhigh').nullable(),
      summary: names('concise', 'detailed', 'auto').nullable(),
    })
    .nullable(),
  usage: usage.nullable(),
  max_output_tokens: z.int().nullable(),
  max_tool_calls: z.int().nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: text,
  metadata: z.unknown(),
  safety_identifier: text.nullable(),
  prompt_cache_key: text.nullable(),
})

/** The body of an error, of HTTP answers and of the event `error`. */
export const openResponsesErrorSchema = z.object({
  type: text,
  code: text.nullable(),
  message: text,
  param: text.nullable(),
})

const response = { response: openResponsesSchema }
const item = { output_index: index, item: openResponsesItemSchema }
const ofItem = { item_id: text.min(1), output_index: index }
const ofContent = { ...ofItem, content_index: index }
const ofSummary = { ...ofItem, summary_index: index }
const delta = { delta: text }

const EVENTS: Record<string, z.ZodRawShape> = {
  'response.created': response,
  'response.queued': response,
  'response.in_progress': response,
  'response.completed': response,
  'response.failed': response,
  'response.incomplete': response,
  'response.output_item.added': item,
  'response.output_item.done': item,
  'response.content_part.added': { ...ofContent, part },
  'response.content_part.done': { ...ofContent, part },
  'response.output_text.delta': { ...ofContent, ...delta },
  'response.output_text.done': { ...ofContent, text },
  'response.output_text.annotation.added': { ...ofContent, annotation_index: index, annotation: urlCitation },
  'response.refusal.delta': { ...ofContent, ...delta },
  'response.refusal.done': { ...ofContent, refusal: text },
  'response.function_call_arguments.delta': { ...ofItem, ...delta },
  'response.function_call_arguments.done': { ...ofItem, arguments: text },
  'response.reasoning_summary_part.added': { ...ofSummary, part },
  'response.reasoning_summary_part.done': { ...ofSummary, part },
  'response.reasoning_summary_text.delta': { ...ofSummary, ...delta },
  'response.reasoning_summary_text.done': { ...ofSummary, text },
  'response.reasoning.delta': { ...ofContent, ...delta },
  'response.reasoning.done': { ...ofContent, text },
  error: { error: openResponsesErrorSchema },
}

/** The statuses with which an event may end a stream. */
const ENDS: Record<string, readonly string[]> = {
  'response.completed': ['completed'],
  'response.failed': ['failed'],
  'response.incomplete': ['incomplete', 'cancelled'],
}

const DONE = 'data: [DONE]\n\n'

/** Events of a stream that Open Responses allows. @throws naming the first event, or the end, that it does not. */
export function openResponsesEvents(stream: string): StreamEvent[] {
  if (!stream.endsWith(DONE)) throw new Error(`the stream has no [DONE] at its end: ${stream.slice(-500)}`)
  const events = readResponseStream(stream.slice(0, -DONE.length))
  for (const { event, data } of events) {
    const shape = EVENTS[event]
    const isExtension = /^(headgate:[a-z_]+(\.[a-z]+)?|response\.mcp_call_arguments\.[a-z]+)$/.test(event)
    if (!shape && !isExtension) throw new Error(`${event} is no event of Open Responses`)
    const parsed = z.object({ type: z.literal(event), sequence_number: index, ...shape }).safeParse(data)
    if (!parsed.success) throw new Error(`${event}: ${parsed.error.message}\n${JSON.stringify(data)}`)
  }
  const last = events.at(-1)
  const ended = (last?.data.response as { status?: string } | undefined)?.status ?? ''
  if (!ENDS[last?.event ?? '']?.includes(ended)) throw new Error(`ends with ${last?.event} and ${ended}`)
  return events
}

/** Events of Open Responses under the names that this service gives them otherwise, for the checker of its streams. */
export const inOwnForm = (events: readonly StreamEvent[]): StreamEvent[] =>
  JSON.parse(
    JSON.stringify(events)
      .replaceAll(/"headgate:([a-z_]+\.[a-z]+)"/g, '"response.$1"')
      .replaceAll('"headgate:', '"')
      .replaceAll('"response.incomplete"', '"response.completed"')
      .replaceAll('"status":"cancelled","error":null,"incomplete_details":null', CANCELLED),
  )

const CANCELLED = '"status":"incomplete","error":null,"incomplete_details":{"reason":"cancelled"}'
