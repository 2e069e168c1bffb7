import { isPresent, type Json } from '../../protocols/json.ts'
import type { CanonicalField } from './canonical-request.ts'
import { CHAT_MEMBERS } from './chat-members.ts'
import { dropped, kept, type MemberRules, refused, translated } from './member-rules.ts'
import { MESSAGES_MEMBERS } from './messages-members.ts'
import { RESPONSES_MEMBERS } from './responses-members.ts'

/**
 * Treatment of members in canonical requests. Whether a field reaches the upstream depends on its wire and model: a writer
 * names the fields that it has expressed, and the member of any other field counts as dropped.
 */
const field =
  (name: CanonicalField) =>
  (expressed: Json): unknown =>
    expressed[name]

const SAMPLING = 'as far as the model takes it'
const sampled = (name: CanonicalField) => kept(SAMPLING, field(name))

/** Members of a chat completion request. */
export const CHAT_TO_CANONICAL: MemberRules = {
  ...CHAT_MEMBERS,
  frequency_penalty: sampled('frequencyPenalty'),
  max_completion_tokens: translated('the maximum of tokens, at most the model’s'),
  max_tokens: translated('the maximum of tokens, where `max_completion_tokens` is absent'),
  messages: translated('the conversation'),
  n: kept('only one choice on streams, and on models that give one', field('choices')),
  parallel_tool_calls: translated('dropped where the model has no such choice', field('parallelCalls')),
  presence_penalty: sampled('presencePenalty'),
  reasoning_effort: translated('the effort or the budget of thinking', field('effort')),
  response_format: translated('the format of the answer, or an instruction', field('format')),
  safety_identifier: dropped('no such member'),
  seed: sampled('seed'),
  stop: translated('stop sequences'),
  stream: translated('the method'),
  temperature: sampled('temperature'),
  thinking: translated('the effort or the budget of thinking', field('effort')),
  tool_choice: translated('the choice of tools; `allowed_tools` limits the names'),
  tools: translated('functions; custom tools are refused'),
  top_p: sampled('topP'),
  user: dropped('no such member'),
  web_search_options: refused('web search is not supported by this model.', isPresent),
}

/** Members of a messages request. */
export const MESSAGES_TO_CANONICAL: MemberRules = {
  ...MESSAGES_MEMBERS,
  max_tokens: translated('the maximum of tokens, at most the model’s'),
  messages: translated('the conversation'),
  output_config: translated('the effort, and the format of the answer'),
  output_format: translated('the format of the answer; the older name of `output_config.format`'),
  stop_sequences: translated('stop sequences'),
  stream: translated('the method'),
  system: translated('the instructions'),
  temperature: sampled('temperature'),
  thinking: translated('the effort or the budget of thinking', field('effort')),
  tool_choice: translated('the choice of tools; dropped: `disable_parallel_tool_use`'),
  tools: translated('functions; tools of the provider are refused'),
  top_k: sampled('topK'),
  top_p: sampled('topP'),
}

/** Members of a responses request. */
export const RESPONSES_TO_CANONICAL: MemberRules = {
  ...RESPONSES_MEMBERS,
  frequency_penalty: sampled('frequencyPenalty'),
  input: translated('the conversation'),
  instructions: translated('the instructions'),
  parallel_tool_calls: translated('dropped where the model has no such choice', field('parallelCalls')),
  presence_penalty: sampled('presencePenalty'),
  prompt_cache_key: dropped('of another vendor'),
  reasoning: translated('the effort or the budget of thinking'),
  safety_identifier: dropped('no such member'),
  service_tier: dropped('tiers of another vendor'),
  temperature: sampled('temperature'),
  text: translated('the format of the answer; `verbosity` is dropped'),
  tool_choice: translated('the choice of tools'),
  tools: translated('functions'),
  top_p: sampled('topP'),
  user: dropped('no such member'),
}
