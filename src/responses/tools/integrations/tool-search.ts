import * as z from 'zod'
import type { ToolAnswer } from '../../../calls/call-tool.ts'
import type { Principal } from '../../../identity/principal.ts'
import { listTools, type ToolCatalogueDeps } from '../../../integrations/catalogue/tool-catalogue.ts'
import { rankTools } from '../../../integrations/platform-tools/tool-ranking.ts'
import { runSlices } from '../../../lib/slices.ts'
import type { OfferedTool, SearchScope } from '../../model/offered-tools.ts'
import { readArguments } from '../arguments.ts'
import type { ToolSearch } from '../hosted-tool.ts'
import { offeredFrom } from './offered-tools.ts'

const TOOL_SEARCH = 'search_tools'

const searchArguments = z.strictObject({
  query: z.string().min(1).max(500),
  limit: z.int().min(1).max(20).nullish(),
})

const DEFAULT_MATCHES = 8

/** The search for the tools of integrations that have too many of them to be listed. */
export const toolSearch = (scope: SearchScope): ToolSearch => ({
  purpose: 'search',
  family: 'platform',
  definition: {
    type: 'function',
    name: TOOL_SEARCH,
    description:
      `Finds tools of ${scope.entries.map(({ label }) => label).join(', ')} by what they do. ` +
      'The tools that it finds can be called after it.',
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What the tool should do, in a few words.' },
        limit: { type: ['integer', 'null'], minimum: 1, maximum: 20 },
      },
      required: ['query'],
      additionalProperties: false,
    },
  },
  itemType: 'service_call',
  members: { name: TOOL_SEARCH },
  repeatable: true,
  scope,
})

/**
 * @param json arguments of the call.
 * @returns the answer for the model, and the tools that it may call from the next turn on.
 * @throws ApiError for invalid arguments, by its message.
 */
export async function searchTools(
  deps: ToolCatalogueDeps,
  principal: Principal,
  scope: SearchScope,
  json: string,
): Promise<{ answer: ToolAnswer; found: OfferedTool[] }> {
  const { query, limit } = readArguments(searchArguments, json)
  const labels = scope.entries.map(({ label }) => label)
  const tools = (await listTools(deps, principal, labels)).flatMap(
    (tool) => offeredFrom(principal, tool, scope) ?? [],
  )
  const byTool = new Map(tools.map((offered) => [offered.tool, offered]))
  const ranked = (await runSlices(rankTools([...byTool.keys()], query))).slice(0, limit ?? DEFAULT_MATCHES)
  const lines = ranked.map(({ name, definition }) => `${name}: ${definition.description ?? ''}`.trim())
  const output =
    ranked.length === 0
      ? `No tool of ${tools.length} matches. Try other words.`
      : `These tools can be called now:\n${lines.join('\n')}`
  return {
    answer: { status: 'completed', members: { output } },
    found: ranked.flatMap((tool) => byTool.get(tool) ?? []),
  }
}
