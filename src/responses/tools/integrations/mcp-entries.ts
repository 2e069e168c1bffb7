import * as z from 'zod'
import type { CatalogueTool } from '../../../integrations/types.ts'
import { invalidRequest } from '../../../lib/api-error.ts'
import { issueReason } from '../../../lib/schema-issues.ts'
import type { ResponseSettings } from '../../../wire/responses.ts'
import type { ApprovalChoice, McpEntry, ToolFilter } from '../../model/offered-tools.ts'

const names = z.array(z.string().min(1).max(256)).max(2_000)
const filter = z.looseObject({ tool_names: names.nullish(), read_only: z.boolean().nullish() })

const entrySchema = z.looseObject({
  server_label: z.string('must be the id of an integration').min(1, 'must be the id of an integration'),
  allowed_tools: z.union([names, filter], 'must be a list of names or an object').nullish(),
  require_approval: z
    .union(
      [z.enum(['always', 'never']), z.looseObject({ always: filter.nullish(), never: filter.nullish() })],
      'must be always, never, or an object',
    )
    .nullish(),
  connection_id: z.string().min(1).max(200).nullish(),
  defer_loading: z.boolean().nullish(),
})

/** Members with which other services call any server: here an administrator connects it first. */
const FOREIGN = ['server_url', 'connector_id', 'authorization', 'headers', 'tunnel_id']

/** @throws ApiError invalid_request that names the member. */
export function mcpEntries(tools: ResponseSettings['tools']): McpEntry[] {
  const entries = (tools ?? []).flatMap((tool, index) =>
    tool.type === 'mcp' ? [readEntry(tool, `tools[${index}]`)] : [],
  )
  const labels = new Set<string>()
  for (const { label, place } of entries) {
    if (labels.has(label)) {
      throw invalidRequest(`${place}.server_label: the integration ${label} is listed twice.`)
    }
    labels.add(label)
  }
  return entries
}

function readEntry(tool: Record<string, unknown>, place: string): McpEntry {
  const foreign = FOREIGN.find((name) => tool[name] !== undefined && tool[name] !== null)
  if (foreign) {
    throw invalidRequest(
      `${place}.${foreign}: is not served here. Name a connected integration with server_label.`,
    )
  }
  const parsed = entrySchema.safeParse(tool)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const path = [place, ...(issue?.path ?? [])].join('.')
    throw invalidRequest(`${path}: ${issue ? issueReason(issue, tool) : 'is not valid'}.`)
  }
  const { server_label: label, allowed_tools: allowed, require_approval: approval } = parsed.data
  const filtered = Array.isArray(allowed) || !allowed ? null : allowed
  return {
    label,
    allowed: Array.isArray(allowed) ? allowed : (filtered?.tool_names ?? null),
    isReadOnly: filtered?.read_only === true,
    approval: approvalOf(approval),
    connectionId: parsed.data.connection_id ?? null,
    isDeferred: parsed.data.defer_loading === true,
    place,
  }
}

type GivenApproval = z.infer<typeof entrySchema>['require_approval']

/** Without a choice, the rules of the organization decide alone. */
function approvalOf(given: GivenApproval): ApprovalChoice {
  const { always, never } = typeof given === 'object' && given !== null ? given : {}
  return {
    others: given === 'always' || (never && !always) ? 'always' : 'never',
    always: filterOf(always),
    never: filterOf(never),
  }
}

const filterOf = (given: z.infer<typeof filter> | null | undefined): ToolFilter => ({
  names: given?.tool_names ?? [],
  readOnly: given?.read_only === true,
})

/** Whether an entry allows a tool of its integration. */
export function isAllowed({ allowed, isReadOnly: readOnly }: McpEntry, tool: CatalogueTool): boolean {
  if (readOnly && !isReadOnly(tool)) return false
  return allowed === null || allowed.includes(tool.definition.name) || allowed.includes(tool.name)
}

export const isReadOnly = ({ definition }: CatalogueTool): boolean =>
  definition.annotations?.readOnlyHint === true
