import * as z from 'zod'
import { contentPart, outputItem, storedItem, summaryPart } from './response-items.ts'

/** Answers of the Responses surface, and the events of its streams (interface: Response object; Events). */

const count = z.int().nonnegative()

const usage = z.strictObject({
  input_tokens: count,
  input_tokens_details: z.strictObject({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: z.strictObject({ reasoning_tokens: count }),
  total_tokens: count,
})

/** Always complete: a member that does not apply is null. `cancelled` is a status of the form of Open Responses alone. */
export const responseObject = z
  .strictObject({
    id: z.string(),
    object: z.literal('response'),
    /** Seconds since the epoch, as is `completed_at`. */
    created_at: count,
    completed_at: count.nullable(),
    status: z.enum(['in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
    error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
    incomplete_details: z.strictObject({ reason: z.string() }).nullable(),
    access_programs: z.null(),
    background: z.boolean(),
    conversation: z.strictObject({ id: z.string() }).nullable(),
    previous_response_id: z.string().nullable(),
    instructions: z.string().nullable(),
    model: z.string(),
    output: z.array(outputItem),
    output_text: z.string(),
    tools: z.array(z.looseObject({ type: z.string() })),
    tool_choice: z.union([z.string(), z.looseObject({ type: z.string() })]),
    parallel_tool_calls: z.boolean(),
    max_output_tokens: count.nullable(),
    max_tool_calls: count.nullable(),
    text: z.looseObject({ format: z.looseObject({ type: z.string() }) }),
    reasoning: z.looseObject({ effort: z.string().nullable(), summary: z.string().nullable() }).nullable(),
    truncation: z.enum(['auto', 'disabled']),
    temperature: z.number().nullable(),
    top_p: z.number().nullable(),
    top_logprobs: count,
    presence_penalty: z.number(),
    frequency_penalty: z.number(),
    service_tier: z.string().nullable(),
    safety_identifier: z.string().nullable(),
    prompt_cache_key: z.string().nullable(),
    user: z.string().nullable(),
    store: z.boolean(),
    metadata: z.record(z.string(), z.unknown()),
    usage: usage.nullable(),
  })
  .meta({ id: 'Response' })

export const deletedResponse = z.strictObject({
  id: z.string(),
  object: z.literal('response'),
  deleted: z.literal(true),
})

export const compactionResult = z.strictObject({
  id: z.string(),
  object: z.literal('response.compaction'),
  created_at: count,
  usage: usage.nullable(),
  output: z.array(storedItem),
})

export const itemList = z.strictObject({
  object: z.literal('list'),
  data: z.array(storedItem),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
})

/** An event of a type. `sequence_number` counts from 1, without gaps. */
const event = <Type extends string, Shape extends z.core.$ZodLooseShape>(type: Type, shape: Shape) =>
  z.strictObject({ type: z.literal(type), sequence_number: count, ...shape })

const withResponse = { response: responseObject }
const place = { item_id: z.string(), output_index: count }
const inContent = { ...place, content_index: count }
const inSummary = { ...place, summary_index: count }
const delta = { delta: z.string() }
const itemPlace = { output_index: count, item: outputItem }

/** The events of a stream (interface: Responses stream), in the own form. */
export const responseEvent = z
  .discriminatedUnion('type', [
    event('response.created', withResponse),
    event('response.in_progress', withResponse),
    event('response.completed', withResponse),
    event('response.incomplete', withResponse),
    event('response.failed', withResponse),
    event('error', {
      error: z.strictObject({
        message: z.string(),
        type: z.literal('server_error'),
        code: z.literal('stream_error'),
      }),
      param: z.null(),
    }),
    event('response.output_item.added', itemPlace),
    event('response.output_item.done', itemPlace),
    event('response.content_part.added', { ...inContent, part: contentPart }),
    event('response.content_part.done', { ...inContent, part: contentPart }),
    event('response.output_text.delta', { ...inContent, ...delta, logprobs: z.array(z.unknown()) }),
    event('response.output_text.done', { ...inContent, text: z.string(), logprobs: z.array(z.unknown()) }),
    event('response.output_text.annotation.added', {
      ...inContent,
      annotation_index: count,
      annotation: z.looseObject({ type: z.string() }),
    }),
    event('response.refusal.delta', { ...inContent, ...delta }),
    event('response.refusal.done', { ...inContent, refusal: z.string() }),
    event('response.function_call_arguments.delta', { ...place, ...delta }),
    event('response.function_call_arguments.done', { ...place, name: z.string(), arguments: z.string() }),
    event('response.custom_tool_call_input.delta', { ...place, ...delta }),
    event('response.custom_tool_call_input.done', { ...place, input: z.string() }),
    event('response.reasoning_summary_part.added', { ...inSummary, part: summaryPart }),
    event('response.reasoning_summary_part.done', { ...inSummary, part: summaryPart }),
    event('response.reasoning_summary_text.delta', { ...inSummary, ...delta }),
    event('response.reasoning_summary_text.done', { ...inSummary, text: z.string() }),
    event('response.mcp_call_arguments.delta', { ...place, ...delta }),
    event('response.mcp_call_arguments.done', { ...place, arguments: z.string() }),
    event('response.service_call_arguments.delta', { ...place, ...delta }),
    event('response.service_call_arguments.done', { ...place, arguments: z.string() }),
    event('response.compaction.compacting', place),
  ])
  .meta({ id: 'ResponseEvent' })
