import { readCall } from './input-item.ts'
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
