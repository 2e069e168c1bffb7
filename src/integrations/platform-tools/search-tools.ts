import * as z from 'zod'
import type { Database } from '../../../schema/database.ts'
import type { Principal } from '../../identity/principal.ts'
import { runSlices } from '../../lib/slices.ts'
import { listTools, type ToolCatalogueDeps } from '../catalogue/tool-catalogue.ts'
import { visibleConnections } from '../connections/visible-connections.ts'
import type { CatalogueTool } from '../types.ts'
import { output, platformTool, READS } from './platform-tool.ts'
import { rankTools } from './tool-ranking.ts'

export type ToolSearchDeps = ToolCatalogueDeps & { database: Database }

const slug = z.string().min(1).max(100)
const schema = z.record(z.string(), z.unknown())

const searchInput = z.strictObject({
  query: z.string().min(1).max(500).describe('What the tool should do, in a few words.'),
  integrations: z.array(slug).max(100).optional().describe('Only tools of these integrations.'),
  limit: z.int().min(1).max(50).default(10),
  detail: z
    .enum(['name', 'summary', 'schema'])
    .default('summary')
    .describe(
      'What is returned of each tool: its name, also title and description, or its input schema as well.',
    ),
})

const searchTools = platformTool<ToolSearchDeps, typeof searchInput>({
  name: 'platform_search_tools',
  title: 'Search tools',
  description:
    'Finds tools of your integrations by what they do. Call a tool that is found by its name, or by platform_execute_tool if ' +
    'it is not in your list of tools.',
  input: searchInput,
  output: z.object({
    matches: z.array(
      z.object({
        name: z.string(),
        title: z.string().optional(),
        description: z.string().optional(),
        integration_id: z.string(),
        connected: z
          .boolean()
          .describe('Whether the tool can be called without connecting an account first.'),
        input_schema: schema.optional(),
      }),
    ),
  }),
  hints: READS,
  async run(deps, principal, { query, integrations, limit, detail }) {
    const [tools, connected] = await Promise.all([
      listTools(deps, principal, integrations ?? null),
      connectedSlugs(deps, principal),
    ])
    const matches = (await runSlices(rankTools(tools, query))).slice(0, limit)
    return output({
      matches: matches.map(({ name, definition, integration }) => ({
        name,
        ...(detail !== 'name' && { title: definition.title, description: definition.description }),
        integration_id: integration.slug,
        connected: integration.authorization.kind === 'none' || connected.has(integration.slug),
        ...(detail === 'schema' && { input_schema: definition.inputSchema }),
      })),
    })
  },
})

async function connectedSlugs(deps: ToolSearchDeps, principal: Principal): Promise<Set<string>> {
  const connections = await visibleConnections(deps, principal)
  return new Set(connections.filter(({ status }) => status === 'active').map(({ slug: of }) => of))
}

const schemasInput = z.strictObject({ names: z.array(z.string().min(1).max(128)).min(1).max(20) })

const getToolSchemas = platformTool<ToolSearchDeps, typeof schemasInput>({
  name: 'platform_get_tool_schemas',
  title: 'Get the schemas of tools',
  description: 'Returns what tools take and return, as JSON schemas, by their names.',
  input: schemasInput,
  output: z.object({
    tools: z.array(
      z.object({
        name: z.string(),
        title: z.string().optional(),
        description: z.string().optional(),
        integration_id: z.string(),
        input_schema: schema,
        output_schema: schema.optional(),
        annotations: schema.optional(),
      }),
    ),
    missing: z.array(z.string()).describe('Names of which you may use no tool.'),
  }),
  hints: READS,
  async run(deps, principal, { names }) {
    const tools = new Map((await listTools(deps, principal, null)).map((tool) => [tool.name, tool]))
    const wanted = [...new Set(names)]
    return output({
      tools: wanted.flatMap((name) => tools.get(name) ?? []).map(described),
      missing: wanted.filter((name) => !tools.has(name)),
    })
  },
})

const described = ({ name, definition, integration }: CatalogueTool) => ({
  name,
  title: definition.title,
  description: definition.description,
  integration_id: integration.slug,
  input_schema: definition.inputSchema,
  output_schema: definition.outputSchema,
  annotations: definition.annotations,
})

export const toolTools = [searchTools, getToolSchemas]
