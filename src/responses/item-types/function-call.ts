import { givenCall } from './given-item.ts'
import type { ItemType } from './item-type.ts'

/** A call of a function of the caller, as a model writes it. */
export const functionCall: ItemType = {
  prefix: 'fc',
  read: (item) => givenCall(item, 'arguments'),
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
      // Clients of the 6th major version read the name here.
      doneMembers: ({ name }) => ({ name }),
    },
  },
}
