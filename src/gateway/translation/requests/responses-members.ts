import { dropped, kept, type MemberRules, translated } from './member-rules.ts'

const OPENAI_ALONE = 'for models of OpenAI, whose word it is: other servers of chat completions may refuse it'
const HOSTED = 'ran at another provider; what came of it is told in the text after it'

/**
 * Members of a turn of the responses protocol on their way to chat completions. On their way to the messages protocol
 * they become what `CHAT_MEMBERS` say of the chat member they are translated to.
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
  tool_choice: translated('`tool_choice`; `allowed_tools` by its mode, a tool of the provider as `auto`'),
  tools: translated('function tools, custom ones too; tools of the provider are left out'),
  top_logprobs: dropped('log probabilities are not told in responses of translated calls'),
  top_p: kept('dropped for models that reason, which refuse it'),
  user: kept(),
}

/** Items of `input`. Kinds that are not here are refused. */
export const RESPONSES_ITEMS: MemberRules = {
  message: translated('a message; consecutive ones of the assistant are one, without their `phase`'),
  function_call: translated('a tool call of the message it belongs to, its namespace before its name'),
  function_call_output: translated(
    'a tool message right after the calls; images and files of it follow as the user’s on chat completions',
  ),
  custom_tool_call: translated('a call of a function with one argument `input`'),
  custom_tool_call_output: translated('as function_call_output'),
  reasoning: translated('a thinking block of the family that it comes from; dropped for all others'),
  additional_tools: dropped('tools are those of the request'),
  apply_patch_call: dropped(HOSTED),
  apply_patch_call_output: dropped(HOSTED),
  code_interpreter_call: dropped(HOSTED),
  compaction: dropped('readable by its own provider only'),
  compaction_trigger: dropped('the whole conversation is sent'),
  computer_call: dropped(HOSTED),
  computer_call_output: dropped(HOSTED),
  configuration_update: dropped('settings are those of the request'),
  file_search_call: dropped(HOSTED),
  image_generation_call: dropped(HOSTED),
  item_reference: dropped('stands for an item that is there by itself'),
  local_shell_call: dropped(HOSTED),
  local_shell_call_output: dropped(HOSTED),
  mcp_approval_request: dropped(HOSTED),
  mcp_approval_response: dropped(HOSTED),
  mcp_call: dropped(HOSTED),
  mcp_list_tools: dropped('tools of another provider'),
  program: dropped(HOSTED),
  program_output: dropped(HOSTED),
  service_call: dropped(HOSTED),
  shell_call: dropped(HOSTED),
  shell_call_output: dropped(HOSTED),
  tool_search_call: dropped(HOSTED),
  tool_search_output: dropped(HOSTED),
  web_search_call: dropped(HOSTED),
}

/** Parts of messages and of outputs. Kinds that are not here are refused. */
export const RESPONSES_PARTS: MemberRules = {
  input_text: kept('as `text`'),
  output_text: kept('as `text`'),
  refusal: translated('`refusal` of the assistant’s message, or its text on messages'),
  input_image: translated('an image_url part or an image block; refused where it is a file id'),
  input_file: translated(
    'a file part or a document block; a URL is taken on messages only, a file id nowhere',
  ),
  input_audio: kept('refused on messages, which has no sound'),
}
