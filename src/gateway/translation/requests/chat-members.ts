import { isPresent, numberOf } from '../../protocols/json.ts'
import { dropped, holdsItems, kept, type MemberRules, refused, removed, translated } from './member-rules.ts'

const ANOTHER_TOKENIZER = 'has token ids of another vendor’s tokenizer'

/** Members of a chat completion request converted to the messages protocol. */
export const CHAT_MEMBERS: MemberRules = {
  audio: refused('audio output is not supported by this model.'),
  frequency_penalty: dropped('the messages protocol has no such sampling'),
  function_call: removed('no effect without `functions`, which are refused'),
  functions: refused('functions are not supported by this model: send them as tools.', holdsItems),
  logit_bias: dropped(ANOTHER_TOKENIZER),
  logprobs: refused(
    'log probabilities are not supported by this model.',
    (value) => value !== false && isPresent(value),
  ),
  max_completion_tokens: translated('`max_tokens`, at most the model’s maximum, which is also the default'),
  max_tokens: translated('`max_tokens`, where `max_completion_tokens` is absent'),
  messages: translated('`system` and `messages`'),
  metadata: removed('removed on every call'),
  modalities: refused('only text output is supported by this model.', wantsMoreThanText),
  model: translated('the model’s id at its provider'),
  moderation: refused('moderation within the request is not supported by this model.'),
  n: refused('only one choice is supported by this model.', (value) => (numberOf(value) ?? 1) !== 1),
  parallel_tool_calls: translated('`tool_choice.disable_parallel_tool_use`'),
  prediction: dropped('only makes the answer faster'),
  presence_penalty: dropped('the messages protocol has no such sampling'),
  prompt_cache_key: dropped('the messages protocol needs no cache key'),
  prompt_cache_options: dropped('specific to OpenAI; `cache_control` of parts is kept'),
  prompt_cache_retention: dropped('specific to OpenAI; `cache_control` of parts is kept'),
  reasoning_effort: translated(
    '`thinking` and `output_config.effort`, as far as the model supports them',
    (body) => body.thinking ?? body.output_config,
  ),
  response_format: translated(
    '`output_config.format`, or an instruction where the model has no schemas; `json_object` becomes an instruction',
  ),
  safety_identifier: translated(
    '`metadata.user_id`, where it is no e-mail address or telephone number',
    (body) => body.metadata,
  ),
  seed: dropped('the messages protocol has no seed'),
  service_tier: dropped('tiers of another vendor'),
  stop: translated('`stop_sequences`; those of white space alone are refused, as by the vendor'),
  store: dropped('nothing is stored at the provider'),
  stream: kept(),
  stream_options: removed('usage is always requested; the caller receives it on request'),
  temperature: translated(
    'at most 1; dropped where the model thinks or takes no sampling',
    (body) => body.temperature,
  ),
  thinking: translated('as the model supports it; a member of messages that chat callers send too'),
  tool_choice: translated('`tool_choice`; `allowed_tools` reduces `tools`'),
  tools: translated('`tools` with `input_schema`; custom tools are refused'),
  top_logprobs: dropped('has no effect without `logprobs`'),
  top_p: kept('dropped beside `temperature`, and where the model thinks or takes no sampling'),
  user: translated(
    '`metadata.user_id`, where it is no e-mail address or telephone number',
    (body) => body.metadata,
  ),
  verbosity: dropped('no such setting in the messages protocol'),
  web_search_options: translated(
    'the server tool web_search with `max_uses: 5`; `search_context_size` is dropped',
  ),
}

function wantsMoreThanText(value: unknown): boolean {
  return Array.isArray(value) && value.some((kind) => kind !== 'text')
}

/** Members of one message of a chat completion request converted to the messages protocol. */
export const CHAT_MESSAGE_MEMBERS: MemberRules = {
  audio: refused('earlier audio is kept at another provider and cannot be used by this model.'),
  cache_control: kept('on the last block of the message'),
  content: translated('blocks; texts of white space alone are dropped, because the vendor refuses them'),
  function_call: refused('function calls of the older form are not supported: send them as tool_calls.'),
  name: dropped('the messages protocol has no names of participants'),
  reasoning_content: dropped('a thinking block needs a signature'),
  refusal: translated('a text block'),
  role: translated(
    'system and developer messages become `system`, tool messages become results in the user’s turn',
  ),
  tool_call_id: translated('`tool_use_id`'),
  tool_calls: translated('tool_use blocks; calls of custom tools are refused'),
}

/** Content parts of chat completions converted to the messages protocol. */
export const CHAT_PARTS: MemberRules = {
  text: kept('with its `cache_control`'),
  image_url: translated('an image block, without `detail`; refused in the assistant’s messages'),
  file: translated(
    'a document block of a PDF in `file_data`; others are refused, and so are those of the assistant',
  ),
  refusal: translated('a text block'),
  input_audio: refused('the messages protocol has no audio'),
  thinking: dropped('of the assistant, as some servers send it; a thinking block needs a signature'),
}
