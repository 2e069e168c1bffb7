import { isPresent } from '../../protocols/json.ts'
import { dropped, holdsItems, kept, type MemberRules, refused, removed, translated } from './member-rules.ts'

const OWN_FAMILY = 'specific to its provider'

/** Members of a messages request, beta ones included, converted to chat completions. */
export const MESSAGES_MEMBERS: MemberRules = {
  betas: dropped(OWN_FAMILY),
  billing_policy: dropped(OWN_FAMILY),
  cache_control: removed('removed on every call'),
  compaction: dropped('the whole conversation is sent'),
  container: refused('containers are not supported by this model.'),
  context_management: dropped('the whole conversation is sent'),
  diagnostics: dropped('about the prompt cache of its provider'),
  fallback_credit_token: dropped(OWN_FAMILY),
  fallbacks: dropped(OWN_FAMILY),
  inference_geo: refused('the region of inference cannot be chosen for this model.'),
  max_tokens: translated(
    '`max_completion_tokens` of models that reason, else `max_tokens`; at most their maximum',
  ),
  mcp_servers: refused('MCP servers are not supported by this model.', holdsItems),
  messages: translated('`messages`'),
  metadata: removed('removed on every call'),
  model: translated('the model’s id at its provider'),
  output_config: translated('`effort` as `reasoning_effort`, `format` as `response_format`'),
  output_format: translated('`response_format`; the older name of `output_config.format`'),
  service_tier: dropped('tiers of another vendor'),
  speed: dropped('tiers of another vendor'),
  stop_sequences: translated('`stop`; some vendors take fewer, and some models that reason refuse it'),
  stream: kept(),
  system: translated('a system message'),
  temperature: kept('dropped for models that reason, which refuse it'),
  thinking: translated('`reasoning_effort` of models that reason'),
  thread: refused('threads are not supported: send the whole conversation.'),
  tool_choice: translated('`tool_choice` and `parallel_tool_calls`'),
  tools: translated('function tools; tools of the provider are refused'),
  top_k: dropped('chat completions have no such sampling'),
  top_p: kept('dropped for models that reason, which refuse it'),
  user_profile_id: dropped(OWN_FAMILY),
  workspace_id: dropped(OWN_FAMILY),
}

/** Content blocks of the messages protocol converted to chat completions, in turns and within tool results. */
export const MESSAGES_BLOCKS: MemberRules = {
  text: kept('without `cache_control` and `citations`'),
  image: translated('an image_url part; an image by file id is refused'),
  document: translated('a file part for a PDF, text for text; refused by URL or file id'),
  search_result: translated('text of its title, source and content'),
  tool_use: translated('a tool call'),
  tool_result: translated(
    'a tool message; errors are marked in its text; images and files follow in a message of the user',
  ),
  tool_reference: translated('text with the name of the tool'),
  compaction: translated('text of the summary'),
  thinking: dropped('only its own family can read it'),
  redacted_thinking: dropped('only its own family can read it'),
  server_tool_use: dropped('ran at another provider; its result is in the text that follows'),
  web_search_tool_result: dropped('only its own provider can read it'),
  web_fetch_tool_result: dropped('ran at another provider'),
  code_execution_tool_result: dropped('ran at another provider'),
  bash_code_execution_tool_result: dropped('ran at another provider'),
  text_editor_code_execution_tool_result: dropped('ran at another provider'),
  tool_search_tool_result: dropped('ran at another provider'),
  advisor_tool_result: dropped('ran at another provider'),
  mcp_tool_use: dropped('ran at another provider'),
  mcp_tool_result: dropped('ran at another provider'),
  mcp_tool_listing: dropped('tools of another provider'),
  fallback: dropped('names a model of another provider'),
  tool_addition: refused('changes the tools within a conversation'),
  tool_removal: refused('changes the tools within a conversation'),
  browser_state: refused('belongs to a tool of its provider'),
  container_upload: refused('stored at another provider', isPresent),
}
