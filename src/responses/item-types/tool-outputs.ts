import { givenOutput } from './given-item.ts'
import type { ItemType } from './item-type.ts'

/** What the caller's tools answered: `function_call_output` and `custom_tool_call_output`. */
const toolOutput = (prefix: string): ItemType => ({
  prefix,
  read: givenOutput,
  direction: () => 'tool_result',
  toModel: 'itself',
})

export const functionCallOutput = toolOutput('fco')
export const customToolCallOutput = toolOutput('ctco')
