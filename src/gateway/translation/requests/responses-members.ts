import { dropped, type MemberRules, removed, translated } from './member-rules.ts'

const BY_THE_GATEWAY = 'done by the gateway itself'
const OF_RESPONSES = 'specific to the vendor of the responses protocol'

/**
 * Members of a responses request in a translation. Members that are not listed are unknown to the gateway: chat completions
 * receive them under their own names, the messages protocol does not.
 */
export const RESPONSES_MEMBERS: MemberRules = {
  background: removed(BY_THE_GATEWAY),
  client_metadata: dropped(OF_RESPONSES),
  context_management: removed(BY_THE_GATEWAY),
  conversation: removed(BY_THE_GATEWAY),
  frequency_penalty: translated('chat: itself', (body) => body.frequency_penalty),
  include: removed(BY_THE_GATEWAY),
  input: translated('`messages`'),
  instructions: translated('a system message, or `system`'),
  max_output_tokens: translated('the maximum of tokens'),
  max_tool_calls: removed(BY_THE_GATEWAY),
  metadata: removed(BY_THE_GATEWAY),
  model: translated('the model’s id at its provider'),
  moderation: removed('refused'),
  parallel_tool_calls: translated('its equivalent'),
  presence_penalty: translated('chat: itself', (body) => body.presence_penalty),
  previous_response_id: removed(BY_THE_GATEWAY),
  prompt: removed('refused'),
  prompt_cache_key: translated('chat models of OpenAI: itself', (body) => body.prompt_cache_key),
  reasoning: translated('`reasoning_effort`, or `thinking` and `output_config`'),
  safety_identifier: translated(
    'itself, or `metadata.user_id`',
    (body) => body.safety_identifier ?? body.metadata,
  ),
  service_tier: translated('chat models of OpenAI: itself', (body) => body.service_tier),
  store: removed(BY_THE_GATEWAY),
  stream: translated('itself'),
  stream_options: removed(BY_THE_GATEWAY),
  temperature: translated('itself', (body) => body.temperature),
  text: translated('`response_format` and `verbosity`, or `output_config.format`'),
  tool_choice: translated('`tool_choice`'),
  tools: translated('function tools'),
  top_logprobs: dropped('no log probabilities in the answers of translated calls'),
  top_p: translated('itself', (body) => body.top_p),
  truncation: removed(BY_THE_GATEWAY),
  user: translated('itself, or `metadata.user_id`', (body) => body.user ?? body.metadata),
}
