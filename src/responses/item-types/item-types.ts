import type { Direction } from '../../governance/dlp/types.ts'
import { newId } from '../../lib/ids.ts'
import { customToolCall } from './custom-tool-call.ts'
import { functionCall } from './function-call.ts'
import { keptItem } from './given-item.ts'
import { hostedDirection, mcpCall, serviceCall, shellCall, webSearchCall } from './hosted-calls.ts'
import type { CallAnswer, ItemType } from './item-type.ts'
import { message } from './message.ts'
import { reasoning } from './reasoning.ts'
import { customToolCallOutput, functionCallOutput } from './tool-outputs.ts'

/** A type that only histories of other gateways bring in: kept for its owner, and no model is given it. */
const kept = (direction: (member: string) => Direction): ItemType => ({
  prefix: 'item',
  read: keptItem,
  direction,
  toModel: 'nothing',
})

const call = kept(hostedDirection)
const result = kept(() => 'tool_result')
const setting = kept(() => 'request')

/**
 * Every type of item of the Responses surface (`ResponseInputItem` of https://github.com/openai/openai-node, and ours).
 * `item_reference` is none: it stands for an item. What a model is told of the types that are its own is decided by
 * `RESPONSES_ITEMS` of the gateway's translation.
 */
export const ITEM_TYPES: ReadonlyMap<string, ItemType> = new Map(
  Object.entries({
    message,
    reasoning,
    function_call: functionCall,
    function_call_output: functionCallOutput,
    custom_tool_call: customToolCall,
    custom_tool_call_output: customToolCallOutput,
    mcp_call: mcpCall,
    service_call: serviceCall,
    shell_call: shellCall,
    web_search_call: webSearchCall,
    additional_tools: setting,
    apply_patch_call: call,
    apply_patch_call_output: result,
    code_interpreter_call: call,
    compaction: setting,
    compaction_trigger: setting,
    computer_call: call,
    computer_call_output: result,
    configuration_update: setting,
    file_search_call: call,
    image_generation_call: call,
    local_shell_call: call,
    local_shell_call_output: result,
    mcp_approval_request: call,
    mcp_approval_response: setting,
    mcp_list_tools: result,
    program: setting,
    program_output: result,
    shell_call_output: result,
    tool_search_call: call,
    tool_search_output: result,
  }),
)

/** Types of calls that the caller answers, by the type of the answer. */
export const CALL_OF_OUTPUT: ReadonlyMap<string, string> = new Map(
  [...ITEM_TYPES].flatMap(([type, { answer }]) => (answer ? [[answer.type, type]] : [])),
)

/** What answers a call of a type; null for what the caller does not answer. */
export const answerOf = (type: string): CallAnswer | null => ITEM_TYPES.get(type)?.answer ?? null

/** Makes the id of an item, with the prefix of its type. */
export const newItemId = (type: string): string => newId(ITEM_TYPES.get(type)?.prefix ?? 'item')
