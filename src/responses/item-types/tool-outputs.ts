import { readOutput } from './input-item.ts'
import type { ItemType } from './item-type.ts'

/** The output of a tool of the caller: `function_call_output` and `custom_tool_call_output`. */
const toolOutput = (prefix: string): ItemType => ({
  prefix,
  read: readOutput,
  direction: () => 'tool_result',
  toModel: 'itself',
})

export const functionCallOutput = toolOutput('fco')
export const customToolCallOutput = toolOutput('ctco')
