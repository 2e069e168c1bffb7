// The shape of a messages request as the vendor checks it: undocumented members are refused.
// https://docs.claude.com/en/api/messages
import * as z from 'zod'

export const toolNamePattern = /^[a-zA-Z0-9_-]{1,128}$/
const identifier = z.string().regex(/^[a-zA-Z0-9_-]+$/)
const cacheControl = z
  .strictObject({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).optional() })
  .nullish()
const dictionary = z.record(z.string(), z.unknown())

const text = z.strictObject({
  type: z.literal('text'),
  text: z.string(),
  cache_control: cacheControl,
  citations: z.array(dictionary).nullish(),
})

const base64 = z
  .string()
  .refine((data) => /^[A-Za-z0-9+/]+={0,2}$/.test(data.slice(-1000)) && !data.startsWith('data:'), {
    message: 'Input should be valid base64 data',
  })
const webAddress = z.string().regex(/^https:\/\//)
const fileSource = z.strictObject({ type: z.literal('file'), file_id: z.string() })
const urlSource = z.strictObject({ type: z.literal('url'), url: webAddress })

const image = z.strictObject({
  type: z.literal('image'),
  source: z.discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('base64'),
      media_type: z.enum(['image/jpeg', 'image/png', 'image/gif', 'image/webp']),
      data: base64,
    }),
    urlSource,
    fileSource,
  ]),
  cache_control: cacheControl,
  transformations: dictionary.nullish(),
})

const document = z.strictObject({
  type: z.literal('document'),
  source: z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('base64'), media_type: z.literal('application/pdf'), data: base64 }),
    z.strictObject({ type: z.literal('text'), media_type: z.literal('text/plain'), data: z.string() }),
    z.strictObject({
      type: z.literal('content'),
      content: z.union([z.string(), z.array(z.discriminatedUnion('type', [text, image]))]),
    }),
    urlSource,
    fileSource,
  ]),
  cache_control: cacheControl,
  citations: z.strictObject({ enabled: z.boolean().optional() }).nullish(),
  context: z.string().nullish(),
  title: z.string().nullish(),
})

const searchResult = z.strictObject({
  type: z.literal('search_result'),
  source: z.string(),
  title: z.string(),
  content: z.array(text),
  cache_control: cacheControl,
  citations: z.strictObject({ enabled: z.boolean().optional() }).optional(),
})

const toolUse = z.strictObject({
  type: z.literal('tool_use'),
  id: identifier,
  name: z.string().regex(toolNamePattern),
  input: dictionary,
  cache_control: cacheControl,
  caller: dictionary.optional(),
  toolset_name: z.string().nullish(),
})

const toolResult = z.strictObject({
  type: z.literal('tool_result'),
  tool_use_id: identifier,
  content: z
    .union([
      z.string(),
      z.array(
        z.discriminatedUnion('type', [
          text,
          image,
          document,
          searchResult,
          z.looseObject({ type: z.literal('tool_reference'), tool_name: z.string() }),
          z.looseObject({ type: z.literal('browser_state') }),
        ]),
      ),
    ])
    .optional(),
  is_error: z.boolean().optional(),
  cache_control: cacheControl,
  toolset_name: z.string().nullish(),
})

/** Results of tools that the provider runs itself: they come back as it sent them. */
const serverResults = [
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'mcp_tool_result',
] as const
const serverResult = (type: (typeof serverResults)[number]) =>
  z.looseObject({ type: z.literal(type), tool_use_id: z.string(), content: z.unknown() })

const block = z.discriminatedUnion('type', [
  text,
  image,
  document,
  searchResult,
  toolUse,
  toolResult,
  z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
  z.strictObject({ type: z.literal('redacted_thinking'), data: z.string() }),
  z.strictObject({
    type: z.literal('server_tool_use'),
    id: z.string().regex(/^srvtoolu_[a-zA-Z0-9_]+$/),
    name: z.string(),
    input: dictionary,
    cache_control: cacheControl,
    caller: dictionary.optional(),
  }),
  z.looseObject({ type: z.literal('mcp_tool_use'), id: z.string(), name: z.string(), input: dictionary }),
  z.looseObject({ type: z.literal('container_upload'), file_id: z.string() }),
  z.looseObject({ type: z.literal('compaction') }),
  serverResult('web_search_tool_result'),
  serverResult('web_fetch_tool_result'),
  serverResult('code_execution_tool_result'),
  serverResult('bash_code_execution_tool_result'),
  serverResult('text_editor_code_execution_tool_result'),
  serverResult('tool_search_tool_result'),
  serverResult('mcp_tool_result'),
])

const message = z.strictObject({
  // The newest models also take instructions as messages of role `system`, but the vendor's refusal does not state this.
  role: z.string().refine((role) => ['user', 'assistant', 'system'].includes(role), {
    message: "Input should be 'user' or 'assistant'",
  }),
  content: z.union([z.string(), z.array(block)]),
})

const customTool = z.strictObject({
  type: z.literal('custom').nullish(),
  name: z.string().regex(toolNamePattern),
  description: z.string().optional(),
  input_schema: z.looseObject({
    type: z.literal('object'),
    properties: dictionary.nullish(),
    required: z.array(z.string()).nullish(),
  }),
  cache_control: cacheControl,
  strict: z.boolean().nullish(),
  allowed_callers: z.array(z.string()).optional(),
  defer_loading: z.boolean().optional(),
  eager_input_streaming: z.boolean().nullish(),
  input_examples: z.array(dictionary).optional(),
})

const ownToolTypes =
  /^(bash|text_editor|computer|computer_toolset|web_search|web_fetch|code_execution|memory|browser_toolset|tool_search_tool_\w+|mcp_toolset|advisor)_?\d*$/

/** Tools of the vendor are known by their type and have no schema. */
const ownTool = z.looseObject({
  type: z.string().refine((type) => ownToolTypes.test(type), {
    message:
      "Input tag found using 'type' does not match any of the expected tags: 'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'",
  }),
})
const tool = z.union([customTool, ownTool])

const parallel = { disable_parallel_tool_use: z.boolean().optional() }
const toolChoice = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('auto'), ...parallel }),
  z.strictObject({ type: z.literal('any'), ...parallel }),
  z.strictObject({ type: z.literal('tool'), name: z.string(), ...parallel }),
  z.strictObject({ type: z.literal('none') }),
])

const display = { display: z.enum(['summarized', 'omitted']).nullish() }
const thinking = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('enabled'), budget_tokens: z.int().min(1024), ...display }),
  z.strictObject({ type: z.literal('adaptive'), ...display }),
  z.strictObject({ type: z.literal('disabled') }),
  z.strictObject({ type: z.literal('between_tools') }),
])

const outputFormat = z.strictObject({ type: z.literal('json_schema'), schema: dictionary }).nullish()

/** Members that a token count and a message have in common. */
const counted = {
  model: z.string(),
  messages: z.array(message).min(1, 'at least one message is required'),
  system: z.union([z.string(), z.array(text)]).optional(),
  tools: z.array(tool).optional(),
  tool_choice: toolChoice.nullish(),
  thinking: thinking.nullish(),
  output_config: z
    .strictObject({
      effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).nullish(),
      format: outputFormat,
      task_budget: dictionary.nullish(),
    })
    .nullish(),
  cache_control: cacheControl,
  speed: z.enum(['standard', 'fast']).nullish(),
}

export const countSchema = z.strictObject(counted)

export const messagesSchema = z.strictObject({
  ...counted,
  max_tokens: z.int().min(0),
  metadata: z.strictObject({ user_id: z.string().max(256).nullish() }).nullish(),
  stop_sequences: z.array(z.string()).nullish(),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().min(0).nullish(),
  service_tier: z.enum(['auto', 'standard_only']).nullish(),
  container: z.unknown().optional(),
  diagnostics: z.unknown().optional(),
  inference_geo: z.string().nullish(),
  user_profile_id: z.string().nullish(),
  workspace_id: z.string().nullish(),
})

/** Members of betas, known only with a beta header that begins so. */
export const betaMembers = new Map([
  ['context_management', /\b(context-management|compact)-/],
  ['mcp_servers', /\bmcp-client-/],
  ['thread', /\bmessage-threads-/],
  ['output_format', /\bstructured-outputs-/],
  ['fallbacks', /\bserver-side-fallback-/],
  ['fallback_credit_token', /\bfallback-credit-/],
  ['compaction', /\bcompact-/],
  ['billing_policy', /\buser-profiles-/],
])
