import * as z from 'zod'
import type { Compatibility } from './compatibility.ts'
import { LONGEST_MODEL } from './model-requests.ts'

/**
 * The Responses surface (interface: Responses, Response object; where the interface is silent, the official types of
 * `openai`). Members that are not listed are accepted and sent on.
 */

/** Bytes of `metadata` as JSON: it is stored and sent with every snapshot. */
const LARGEST_METADATA = 64 * 1024

const metadata = z
  .record(z.string(), z.unknown())
  .refine(
    (value) => Buffer.byteLength(JSON.stringify(value)) <= LARGEST_METADATA,
    `may have at most ${LARGEST_METADATA} bytes`,
  )

const id = z.string().min(1, 'must not be empty')

/** A string, or an object with an `id`, as the official types allow for a conversation. */
const conversation = z
  .union([id, z.looseObject({ id })], 'must be an id, or an object with one')
  .transform((value) => (typeof value === 'string' ? value : value.id))

/** When a conversation is compacted. The official types have a list, and one type of entry. */
const contextManagement = z
  .array(
    z.looseObject({
      type: z.literal('compaction', 'must be compaction'),
      /** Tokens of the context. */
      compact_threshold: z.int().positive().nullish(),
    }),
  )
  .max(1, 'may have one entry')

/** The body of `POST /v1/responses` without `input`, whose items are read separately. */
export const responseSettings = z.looseObject({
  model: z.string().min(1).max(LONGEST_MODEL, `is too long (at most ${LONGEST_MODEL} characters)`),
  conversation: conversation.nullish(),
  previous_response_id: id.nullish(),
  instructions: z.string().nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z
    .union(
      [z.enum(['auto', 'none', 'required']), z.looseObject({ type: z.string() })],
      'must be auto, none, required, or an object with a type',
    )
    .nullish(),
  stream: z.boolean().nullish(),
  metadata: metadata.nullish(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish(),
  max_output_tokens: z.int().positive().nullish(),
  max_tool_calls: z.int().positive().nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish(), summary: z.string().nullish() }).nullish(),
  include: z.array(z.string()).nullish(),
  truncation: z.enum(['auto', 'disabled']).nullish(),
  context_management: contextManagement.nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  service_tier: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  user: z.string().nullish(),
  // Ignoring either would change the result unnoticed.
  prompt: z.null('templates are not served here, send instructions and input').optional(),
  moderation: z.null('moderation within the request is not served here').optional(),
})

export type ResponseSettings = z.infer<typeof responseSettings>

export type ResponseStatus = 'in_progress' | 'completed' | 'incomplete' | 'failed'

/** A source on the web of a part of a text. Indexes count code points; `end_index` is exclusive. */
export interface UrlCitation {
  type: 'url_citation'
  start_index: number
  end_index: number
  url: string
  title: string
}

interface OutputTextPart {
  type: 'output_text'
  text: string
  annotations: UrlCitation[]
  logprobs: unknown[]
}

interface RefusalPart {
  type: 'refusal'
  refusal: string
}

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

interface MessageItem {
  id: string
  type: 'message'
  role: 'assistant'
  status: ItemStatus
  content: Array<OutputTextPart | RefusalPart>
}

interface FunctionCallItem {
  id: string
  type: 'function_call'
  status: ItemStatus
  call_id: string
  name: string
  /** JSON. */
  arguments: string
  /** Namespace of a function inside a `namespace` tool. */
  namespace?: string
}

interface CustomToolCallItem {
  id: string
  type: 'custom_tool_call'
  status: ItemStatus
  call_id: string
  name: string
  input: string
  namespace?: string
}

export interface ReasoningItem {
  id: string
  type: 'reasoning'
  status: ItemStatus
  summary: Array<{ type: 'summary_text'; text: string }>
  /** Present if `include` has it: sealed by us, and only opened for its owner. */
  encrypted_content?: string | null
}

/** A call of a tool that runs on the gateway. Its result is set at its end. */
interface HostedCallItem {
  id: string
  type: 'mcp_call' | 'service_call'
  status: ItemStatus | 'failed'
  call_id?: string
  name: string
  /** JSON. */
  arguments: string
  output?: string | null
  error?: string | null
  /** Only for an `mcp_call`. */
  server_label?: string
  /** Only for an `mcp_call` that the caller has approved: id of the approval request. */
  approval_request_id?: string
}

/** A call of an integration's tool that waits for the caller's approval. Its arguments are complete from the beginning. */
interface McpApprovalRequestItem {
  id: string
  type: 'mcp_approval_request'
  status: ItemStatus
  call_id?: string
  name: string
  server_label: string
  /** JSON. */
  arguments: string
}

/** A call of web search, with an action of the official types. Results and sources are present if `include` has them. */
interface WebSearchCallItem {
  id: string
  type: 'web_search_call'
  status: ItemStatus | 'failed'
  call_id?: string
  /** Complete from its end on. */
  action: Record<string, unknown>
  results?: Array<Record<string, unknown>>
  output?: string | null
  error?: string | null
}

/** A summary in the place of the items before it. */
interface CompactionItem {
  id: string
  type: 'compaction'
  status: ItemStatus
  /** Sealed by us, and only opened for its owner. */
  encrypted_content: string
}

export type OutputItem =
  | MessageItem
  | FunctionCallItem
  | CustomToolCallItem
  | ReasoningItem
  | HostedCallItem
  | WebSearchCallItem
  | McpApprovalRequestItem
  | CompactionItem

export interface ResponseUsage {
  input_tokens: number
  input_tokens_details: { cached_tokens: number; cache_write_tokens: number }
  output_tokens: number
  output_tokens_details: { reasoning_tokens: number }
  total_tokens: number
}

/** Always complete: a member that does not apply is null, never absent. */
export interface ResponseObject {
  id: string
  object: 'response'
  /** Seconds since the epoch, as is `completed_at`. */
  created_at: number
  /** Null unless the status is `completed`. */
  completed_at: number | null
  status: ResponseStatus
  error: { code: string; message: string } | null
  incomplete_details: { reason: string } | null
  /** Only used by OpenAI's own models; required by the official types. */
  access_programs: null
  background: boolean
  conversation: { id: string } | null
  previous_response_id: string | null
  instructions: string | null
  model: string
  output: OutputItem[]
  output_text: string
  tools: unknown[]
  tool_choice: unknown
  parallel_tool_calls: boolean
  max_output_tokens: number | null
  max_tool_calls: number | null
  text: { format: unknown; [member: string]: unknown }
  reasoning: { effort: string | null; summary: string | null } | null
  truncation: 'auto' | 'disabled'
  temperature: number | null
  top_p: number | null
  top_logprobs: number
  presence_penalty: number
  frequency_penalty: number
  service_tier: string | null
  safety_identifier: string | null
  prompt_cache_key: string | null
  user: string | null
  store: boolean
  metadata: Record<string, unknown>
  /** Null only while it is in progress. */
  usage: ResponseUsage | null
  /** Left out for `headgate`. The rendered form depends on it (`open-responses`), and the member itself is not rendered. */
  compatibility?: Exclude<Compatibility, 'headgate'>
}
