import { dropped, type MemberRules, translated } from './member-rules.ts'

const HOSTED = 'ran at another provider; its result is in the text that follows'

/** Items of `input`. Kinds that are not here are refused. */
export const RESPONSES_ITEMS: MemberRules = {
  message: translated('a message; consecutive ones of the assistant become one, without `phase`'),
  function_call: translated('a tool call of its message, with its namespace before its name'),
  function_call_output: translated(
    'a tool message after the calls; on chat completions its images and files follow in a message of the user',
  ),
  custom_tool_call: translated('a call of a function with one argument `input`'),
  custom_tool_call_output: translated('as function_call_output'),
  reasoning: translated('a thinking block for models of its own origin; dropped for all others'),
  additional_tools: dropped('tools are those of the request'),
  apply_patch_call: dropped(HOSTED),
  apply_patch_call_output: dropped(HOSTED),
  code_interpreter_call: dropped(HOSTED),
  compaction: translated('a message of the user with its summary; one of another service is refused'),
  compaction_trigger: dropped('the gateway compacts the conversation'),
  computer_call: dropped(HOSTED),
  computer_call_output: dropped(HOSTED),
  configuration_update: dropped('settings are those of the request'),
  file_search_call: dropped(HOSTED),
  image_generation_call: dropped(HOSTED),
  item_reference: dropped('the item itself is sent'),
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
