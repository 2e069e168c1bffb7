import type { Direction } from '../../../dlp/types.ts'
import { idOfTurn, newTurn } from '../../model/response-ids.ts'
import { customToolCall, customToolCallOutput, functionCall, functionCallOutput } from './client-calls.ts'
import { compaction } from './compaction.ts'
import { mcpCall, serviceCall, shellCall } from './hosted-calls.ts'
import { hostedDirection } from './hosted-direction.ts'
import { uncheckedItem } from './input-item.ts'
import type { CallAnswer, ItemType } from './item-type.ts'
import { mcpApprovalRequest, mcpApprovalResponse } from './mcp-approvals.ts'
import { message } from './message.ts'
import { reasoning } from './reasoning.ts'
import { webSearchCall } from './web-search-call.ts'

/** A type that occurs in histories of other services only: stored for its owner, and not sent to models. */
const foreign = (direction: (member: string) => Direction): ItemType => ({
  prefix: 'item',
  read: uncheckedItem,
  direction,
  toModel: 'nothing',
})

const call = foreign(hostedDirection)
const result = foreign(() => 'tool_result')
const setting = foreign(() => 'request')

/**
 * Every type of item of the Responses surface: `ResponseInputItem` of https://github.com/openai/openai-node, and those of
 * this service. `item_reference` is not one of them, since it stands for another item. How types with the form `itself` are
 * translated for a model is defined by `RESPONSES_ITEMS` of the gateway.
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
    compaction,
    compaction_trigger: setting,
    computer_call: call,
    computer_call_output: result,
    configuration_update: setting,
    file_search_call: call,
    image_generation_call: call,
    local_shell_call: call,
    local_shell_call_output: result,
    mcp_approval_request: mcpApprovalRequest,
    mcp_approval_response: mcpApprovalResponse,
    mcp_list_tools: result,
    program: setting,
    program_output: result,
    shell_call_output: result,
    tool_search_call: call,
    tool_search_output: result,
  }),
)

/** Types of calls that the caller executes, by the type of their output item. */
export const CALL_OF_OUTPUT: ReadonlyMap<string, string> = new Map(
  [...ITEM_TYPES].flatMap(([type, { answer }]) => (answer ? [[answer.type, type]] : [])),
)

/** The output item of a type of call; null for types that the caller does not execute. */
export const answerOf = (type: string): CallAnswer | null => ITEM_TYPES.get(type)?.answer ?? null

/** Creates the id of an item. @param turn of the model that generated it (`turnOf`); one of its own for all other items. */
export const newItemId = (type: string, turn = newTurn()): string =>
  idOfTurn(ITEM_TYPES.get(type)?.prefix ?? 'item', turn)
