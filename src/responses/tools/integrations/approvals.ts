import type { ApprovalRule } from '../../../governance/tool-rights.ts'
import { toolName } from '../../../integrations/tool-name.ts'
import type { CatalogTool } from '../../../integrations/types.ts'
import { invalidRequest } from '../../../lib/api-error.ts'
import { canonicalJson } from '../../../lib/canonical-json.ts'
import type { ContextItem } from '../../types.ts'
import { type ApprovalChoice, isReadOnly, type ToolFilter } from './mcp-entries.ts'

/** A call that the caller has approved. It is made once. */
export interface ApprovedCall {
  /** The name under which the model calls the tool. */
  name: string
  /** Canonical JSON. */
  arguments: string
}

/** Whether a call of a tool needs the caller's approval: by the organization's rules, or by the request. */
export function needsApproval(
  rules: readonly ApprovalRule[],
  { others, always, never }: ApprovalChoice,
  tool: CatalogTool,
): boolean {
  if (isRequired(rules, tool) || covers(always, tool)) return true
  return others === 'always' && !covers(never, tool)
}

/** Whether the organization requires an approval: no request can waive it. */
export const isRequired = (rules: readonly ApprovalRule[], tool: CatalogTool): boolean =>
  rules.some(
    ({ integration, calls }) =>
      (integration === '*' || integration === tool.integration.slug) &&
      (calls === 'all' || !isReadOnly(tool)),
  )

const covers = ({ names, readOnly }: ToolFilter, tool: CatalogTool): boolean =>
  names.includes(tool.definition.name) || names.includes(tool.name) || (readOnly && isReadOnly(tool))

/** Arguments that mean the same have the same text. Never throws. */
export function canonicalArguments(json: string): string {
  try {
    return canonicalJson(JSON.parse(json))
  } catch {
    return json
  }
}

/**
 * The calls that a request approves.
 * @param context history and input. @param input the items of the request.
 * @throws ApiError invalid_request for a decision about a request for approval that is not in the context.
 */
export function approvedCalls(
  context: readonly ContextItem[],
  input: readonly ContextItem[],
): ApprovedCall[] {
  const decisions = input.filter(({ type }) => type === 'mcp_approval_response').map(parsed)
  if (decisions.length === 0) return []
  const requests = context.filter(({ type }) => type === 'mcp_approval_request').map(parsed)
  return decisions.flatMap(({ approval_request_id: id, approve }) => {
    const request = requests.find((each) => each.id === id)
    if (!request) throw invalidRequest(`No approval request found with id ${String(id).slice(0, 100)}.`)
    if (approve !== true) return []
    const name = toolName(String(request.server_label), String(request.name))
    return [{ name, arguments: canonicalArguments(String(request.arguments)) }]
  })
}

const parsed = ({ bytes }: ContextItem): Record<string, unknown> => JSON.parse(decoder.decode(bytes))

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
