import { customToolInput } from '../../gateway/translation/requests/responses-tools.ts'
import { readCall } from './input-item.ts'
import type { ItemType } from './item-type.ts'

/** A call of a tool of the caller that takes text. Models call it as a function with the single parameter `input`. */
export const customToolCall: ItemType = {
  prefix: 'ctc',
  read: (item) => readCall(item, 'input'),
  direction: () => 'tool_arguments',
  toModel: 'itself',
  answer: {
    type: 'custom_tool_call_output',
    callName: 'custom tool call',
    outputName: 'custom tool call output',
  },
  events: {
    text: {
      member: 'input',
      delta: 'response.custom_tool_call_input.delta',
      done: 'response.custom_tool_call_input.done',
    },
  },
  // Emitted when it is complete, since the model streams it as a part of JSON.
  textOfCall: customToolInput,
}
