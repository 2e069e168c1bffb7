import {
  dropped,
  kept,
  type MemberRules,
  translated,
} from '../../../../../src/gateway/translation/requests/member-rules.ts'

/** Tables of members that the converters read one by one: only the document and its tests need them as data. */

const OPENAI_ALONE = 'for models of OpenAI only: other servers of chat completions may refuse it'
const CACHE = 'chat completions have no cache markers'

/**
 * Members of a turn of the responses protocol converted to chat completions. For the messages protocol the converted
 * members follow `CHAT_MEMBERS`.
 */
export const RESPONSES_MEMBERS: MemberRules = {
  frequency_penalty: kept('dropped for models that reason, which refuse it'),
  input: translated('`messages`'),
  instructions: translated('a system message before all others'),
  max_output_tokens: translated(
    '`max_completion_tokens` of models that reason, else `max_tokens`; at most their maximum',
  ),
  model: translated('the model’s id at its provider'),
  parallel_tool_calls: kept('where it is false and there are tools'),
  presence_penalty: kept('dropped for models that reason, which refuse it'),
  prompt_cache_key: kept(OPENAI_ALONE),
  reasoning: translated(
    '`effort` as `reasoning_effort`, of models that reason; `summary` as `thinking.display`',
  ),
  safety_identifier: kept(OPENAI_ALONE),
  service_tier: kept(OPENAI_ALONE),
  stream: kept(),
  temperature: kept('dropped for models that reason, which refuse it'),
  text: translated('`format` as `response_format`, or an instruction; `verbosity` for models of OpenAI'),
  tool_choice: translated('`tool_choice`; `allowed_tools` becomes its mode, a tool of the provider `auto`'),
  tools: translated('function tools, custom ones too; tools of the provider are left out'),
  top_logprobs: dropped('translated calls return no log probabilities'),
  top_p: kept('dropped for models that reason, which refuse it'),
  user: kept(),
}

/** Parts of messages and of outputs. Kinds that are not here are refused. */
export const RESPONSES_PARTS: MemberRules = {
  input_text: kept('as `text`'),
  output_text: kept('as `text`'),
  refusal: translated('`refusal` of the assistant’s message, or its text on messages'),
  input_image: translated('an image_url part or an image block; refused where it is a file id'),
  input_file: translated('a file part or a document block; a URL only on messages; a file id is refused'),
  input_audio: kept('refused on messages, which has no audio'),
}

/** Members of a tool definition of the messages protocol converted to a function tool. */
export const MESSAGES_TOOL_MEMBERS: MemberRules = {
  allowed_callers: dropped('only the model calls tools'),
  cache_control: dropped(CACHE),
  defer_loading: dropped('all tools are sent at once'),
  description: kept(),
  eager_input_streaming: dropped('specific to its provider'),
  input_examples: dropped('chat completions have no such member'),
  input_schema: translated('`parameters`'),
  name: translated('shortened above 64 characters; calls return the full name'),
  strict: translated('kept where the schema fits the rules of chat completions for strict tools'),
  type: translated('`function`; tools of the provider, such as web_search_20250305, are refused'),
}
