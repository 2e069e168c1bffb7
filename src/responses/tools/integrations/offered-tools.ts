import type { Principal } from '../../../identity/principal.ts'
import type { CatalogueTool } from '../../../integrations/types.ts'
import type { McpEntry, OfferedTool, SearchScope } from '../../model/offered-tools.ts'
import type { IntegrationTool } from '../hosted-tool.ts'
import { needsApproval } from './approvals.ts'
import { isAllowed } from './mcp-entries.ts'

/** A tool of an entry that allows it; null for another one. */
export function offeredFrom(
  principal: Principal,
  tool: CatalogueTool,
  { entries }: SearchScope,
): OfferedTool | null {
  const entry = entries.find(({ label }) => label === tool.integration.slug)
  return entry && isAllowed(entry, tool) ? offeredTool(principal, tool, entry) : null
}

export const offeredTool = (principal: Principal, tool: CatalogueTool, entry: McpEntry): OfferedTool => ({
  tool,
  connectionId: entry.connectionId,
  needsApproval: needsApproval(principal.tools.approvals, entry.approval, tool),
})

/** A tool as a model gets it. */
export const integrationTool = (offered: OfferedTool): IntegrationTool => {
  const { name, definition, integration } = offered.tool
  return {
    purpose: 'integration',
    family: null,
    definition: {
      type: 'function',
      name,
      ...(definition.description !== undefined && { description: definition.description }),
      parameters: definition.inputSchema,
    },
    itemType: 'mcp_call',
    members: { name: definition.name, server_label: integration.slug },
    // The definition is pinned by its hash: a server cannot change the hint without an approval.
    repeatable: definition.annotations?.readOnlyHint === true,
    offered,
  }
}
