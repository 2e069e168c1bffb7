import { hasScope, type Principal } from '../../../identity/principal.ts'
import {
  listIntegrations,
  listTools,
  type ToolCatalogueDeps,
} from '../../../integrations/catalogue/tool-catalogue.ts'
import type { CatalogueTool } from '../../../integrations/types.ts'
import { ApiError, invalidRequest } from '../../../lib/api-error.ts'
import type { ApprovedCall, McpEntry, StoredTools } from '../../model/offered-tools.ts'
import type { IntegrationTool, ToolSearch } from '../hosted-tool.ts'
import { isAllowed } from './mcp-entries.ts'
import { integrationTool, offeredTool } from './offered-tools.ts'
import { toolSearch } from './tool-search.ts'

/** More tools than this, or longer definitions, are searched instead of listed: models choose badly among many. */
const MOST_LISTED = 64
const MOST_LISTED_BYTES = 64 * 1024

/**
 * The tools of the integrations that a request names (`{type: mcp, server_label}`), for the rights of its caller.
 * @param approved calls whose tools are offered although the others of their integration are searched.
 * @throws ApiError invalid_request for an entry that names an integration without tools for this caller; forbidden for a key
 *   without the scope of integrations.
 */
export async function requestedTools(
  deps: ToolCatalogueDeps,
  principal: Principal,
  entries: readonly McpEntry[],
  approved: readonly ApprovedCall[],
): Promise<Array<IntegrationTool | ToolSearch>> {
  if (!hasScope(principal, 'mcp')) {
    throw new ApiError('forbidden', 'This API key does not have the scope mcp.', { code: 'tool_not_allowed' })
  }
  const tools = await toolsOf(deps, principal, entries)
  const listed = tools.filter(({ entry }) => !entry.isDeferred)
  const isShort = listed.length <= MOST_LISTED && bytesOf(listed.map(({ tool }) => tool)) <= MOST_LISTED_BYTES
  const searched = entries.filter(({ isDeferred }) => isDeferred || !isShort)
  const approvedNames = new Set(approved.map(({ name }) => name))
  const offered = tools.filter(
    ({ tool, entry }) => (isShort && !entry.isDeferred) || approvedNames.has(tool.name),
  )
  return [
    ...offered.map(({ tool, entry }) => integrationTool(offeredTool(principal, tool, entry))),
    ...(searched.length > 0 ? [toolSearch({ entries: searched })] : []),
  ]
}

/** The tools of a request that continues after a restart. */
export const storedTools = ({ offered, search }: StoredTools): Array<IntegrationTool | ToolSearch> => [
  ...offered.map(integrationTool),
  ...(search ? [toolSearch(search)] : []),
]

/** The stored form of a request's tools; undefined if it names no integration. */
export function storedForm(requested: ReadonlyArray<IntegrationTool | ToolSearch>): StoredTools | undefined {
  if (requested.length === 0) return undefined
  const search = requested.find((tool) => tool.purpose === 'search')
  return {
    offered: requested.flatMap((tool) => (tool.purpose === 'integration' ? [tool.offered] : [])),
    search: search?.scope ?? null,
  }
}

async function toolsOf(deps: ToolCatalogueDeps, principal: Principal, entries: readonly McpEntry[]) {
  const labels = entries.map(({ label }) => label)
  const tools = await listTools(deps, principal, labels)
  const byLabel = Map.groupBy(tools, ({ integration }) => integration.slug)
  const missing = entries.find(({ label }) => !byLabel.has(label))
  if (missing) throw await unusable(deps, principal, missing)
  return entries.flatMap((entry) =>
    (byLabel.get(entry.label) ?? [])
      .filter((tool) => isAllowed(entry, tool))
      .map((tool) => ({ entry, tool })),
  )
}

async function unusable(deps: ToolCatalogueDeps, principal: Principal, { label, place }: McpEntry) {
  const integrations = await listIntegrations(deps, principal)
  const isGranted = integrations.some(({ slug }) => slug === label)
  return invalidRequest(
    isGranted
      ? `${place}.server_label: you have no connection to the integration ${label} that has tools. Connect an account first.`
      : `${place}.server_label: you can use no integration ${JSON.stringify(label.slice(0, 100))}.`,
    isGranted ? 'connection_required' : 'invalid_body',
  )
}

const bytesOf = (tools: readonly CatalogueTool[]): number =>
  tools.reduce((sum, { definition }) => sum + JSON.stringify(definition).length, 0)
