import * as z from 'zod'
import { platformError, platformTool } from './platform-tool.ts'

export const EXECUTE_TOOL = 'platform_execute_tool'

export const executeInput = z.strictObject({
  name: z.string().min(1).max(128).describe('The name of the tool, as it is found.'),
  arguments: z.record(z.string(), z.unknown()).default({}).describe("The tool's own arguments."),
  connection_id: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('The connection to use, in place of your default.'),
})

/**
 * Calls another tool. The governed call is that of the other tool (`mcp-server/find-callable-tool`): what runs here is a call
 * of a tool that was not found.
 */
export const executeTool = platformTool<unknown, typeof executeInput>({
  name: EXECUTE_TOOL,
  title: 'Execute a tool',
  description:
    'Calls a tool by its name, also one that is not in your list of tools, and returns its result. What it does and whether it ' +
    'changes something is up to that tool.',
  input: executeInput,
  hints: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  run: async (_deps, _principal, { name }) => platformError('not_found', `There is no tool named ${name}.`),
})
