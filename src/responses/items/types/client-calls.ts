import { customToolInput } from '../../../gateway/translation/requests/responses-tools.ts'
import { readCall, readOutput } from './input-item.ts'
import type { ItemType } from './item-type.ts'

/** A call of a function of the caller. */
export const functionCall: ItemType = {
  prefix: 'fc',
  read: (item) => readCall(item, 'arguments'),
  direction: () => 'tool_arguments',
  toModel: 'itself',
  answer: {
    type: 'function_call_output',
    callName: 'function call',
    outputName: 'function call output',
  },
  events: {
    text: {
      member: 'arguments',
      delta: 'response.function_call_arguments.delta',
      done: 'response.function_call_arguments.done',
      // Version 6 of the official client reads the name here.
      doneMembers: ({ name }) => ({ name }),
    },
  },
}

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

/** The output of a tool of the caller: `function_call_output` and `custom_tool_call_output`. */
const toolOutput = (prefix: string): ItemType => ({
  prefix,
  read: readOutput,
  direction: () => 'tool_result',
  toModel: 'itself',
})

export const functionCallOutput = toolOutput('fco')
export const customToolCallOutput = toolOutput('ctco')
