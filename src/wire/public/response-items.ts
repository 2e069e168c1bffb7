import * as z from 'zod'

/**
 * Output items of responses (interface: Response object; where it is silent, the official types of `openai`). The types of items that
 * Open Responses does not have carry the prefix of this service in its form (docs/responses.md).
 */

const itemStatus = z.enum(['in_progress', 'completed', 'incomplete'])
const hostedStatus = z.enum(['in_progress', 'completed', 'incomplete', 'failed'])

/** Indexes count code points; `end_index` is exclusive. */
const urlCitation = z.strictObject({
  type: z.literal('url_citation'),
  start_index: z.int(),
  end_index: z.int(),
  url: z.string(),
  title: z.string(),
})

const outputText = z.strictObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(urlCitation),
  logprobs: z.array(z.unknown()),
})

const refusal = z.strictObject({ type: z.literal('refusal'), refusal: z.string() })

export const contentPart = z.discriminatedUnion('type', [outputText, refusal])

const message = z.strictObject({
  id: z.string(),
  type: z.literal('message'),
  role: z.literal('assistant'),
  status: itemStatus,
  content: z.array(contentPart),
})

/** `arguments` is JSON; `namespace` that of a function inside a `namespace` tool. */
const functionCall = z.strictObject({
  id: z.string(),
  type: z.literal('function_call'),
  status: itemStatus,
  call_id: z.string(),
  name: z.string(),
  arguments: z.string(),
  namespace: z.string().optional(),
})

const customToolCall = z.strictObject({
  id: z.string(),
  type: z.literal('custom_tool_call'),
  status: itemStatus,
  call_id: z.string(),
  name: z.string(),
  input: z.string(),
  namespace: z.string().optional(),
})

export const summaryPart = z.strictObject({ type: z.literal('summary_text'), text: z.string() })

/** `encrypted_content` is there if `include` has it: sealed by the gateway, and only opened for its owner. */
const reasoning = z.strictObject({
  id: z.string(),
  type: z.literal('reasoning'),
  status: itemStatus,
  summary: z.array(summaryPart),
  encrypted_content: z.string().nullable().optional(),
})

/** The result of a call of a tool that runs on the gateway is set at its end. */
const hostedResult = { output: z.string().nullable().optional(), error: z.string().nullable().optional() }

const serviceCall = z.strictObject({
  id: z.string(),
  type: z.literal('service_call'),
  status: hostedStatus,
  call_id: z.string().optional(),
  name: z.string(),
  arguments: z.string(),
  ...hostedResult,
})

const mcpCall = z.strictObject({
  ...serviceCall.shape,
  type: z.literal('mcp_call'),
  server_label: z.string().optional(),
  approval_request_id: z.string().nullable().optional(),
})

const mcpApprovalRequest = z.strictObject({
  id: z.string(),
  type: z.literal('mcp_approval_request'),
  status: itemStatus,
  call_id: z.string().optional(),
  name: z.string(),
  server_label: z.string(),
  arguments: z.string(),
})

/** The official action and output, and the error of a call that could not run. */
const shellCall = z.strictObject({
  id: z.string(),
  type: z.literal('shell_call'),
  status: hostedStatus,
  call_id: z.string().optional(),
  action: z.record(z.string(), z.unknown()).optional(),
  environment: z.null().optional(),
  output: z.unknown().optional(),
  error: z.string().nullable().optional(),
})

/** Results and sources are there if `include` has them. */
const webSearchCall = z.strictObject({
  id: z.string(),
  type: z.literal('web_search_call'),
  status: hostedStatus,
  call_id: z.string().optional(),
  action: z.record(z.string(), z.unknown()),
  results: z.array(z.record(z.string(), z.unknown())).optional(),
  ...hostedResult,
})

const compaction = z.strictObject({
  id: z.string(),
  type: z.literal('compaction'),
  status: itemStatus,
  encrypted_content: z.string(),
})

const extension = <Shape extends z.core.$ZodLooseShape, Type extends string>(
  item: z.ZodObject<Shape>,
  type: Type,
) => item.extend({ type: z.literal(`headgate:${type}` as const) })

export const outputItem = z
  .discriminatedUnion('type', [
    message,
    functionCall,
    customToolCall,
    reasoning,
    serviceCall,
    mcpCall,
    mcpApprovalRequest,
    shellCall,
    webSearchCall,
    compaction,
    extension(customToolCall, 'custom_tool_call'),
    extension(serviceCall, 'service_call'),
    extension(shellCall, 'shell_call'),
    extension(webSearchCall, 'web_search_call'),
  ])
  .meta({ id: 'OutputItem' })

/** An item of a conversation: an output item, or one that a request held, with the members that it was sent with. */
export const storedItem = z.looseObject({ id: z.string(), type: z.string() }).meta({ id: 'StoredItem' })
