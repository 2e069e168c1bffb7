import type { Database } from '../../../../schema/database.ts'
import type { ApprovalRule } from '../../../identity/tool-rights.ts'
import { toolName } from '../../../integrations/catalogue/tool-name.ts'
import type { CatalogueTool } from '../../../integrations/types.ts'
import { invalidRequest } from '../../../lib/api-error.ts'
import { canonicalJson } from '../../../lib/canonical-json.ts'
import type { KeyRing } from '../../../lib/crypto.ts'
import { isModelOutput } from '../../items/model-output.ts'
import {
  type ReadDecision,
  type ReadRequest,
  readApprovalDecision,
  readApprovalRequest,
} from '../../items/types/mcp-approvals.ts'
import type { ApprovalChoice, ApprovedCall, ToolFilter } from '../../model/offered-tools.ts'
import { isApprovalId, newApprovalId } from '../../model/response-ids.ts'
import type { ContextItem, Members, Owner } from '../../model/types.ts'
import { selectClaimed } from '../../store/approval-claims.store.ts'
import type { ServiceTool } from '../hosted-tool.ts'
import { isReadOnly } from './mcp-entries.ts'

/** Whether a call of a tool needs the caller's approval: by the organization's rules, or by the request. */
export function needsApproval(
  rules: readonly ApprovalRule[],
  { others, always, never }: ApprovalChoice,
  tool: CatalogueTool,
): boolean {
  if (isRequired(rules, tool) || covers(always, tool)) return true
  return others === 'always' && !covers(never, tool)
}

/** Whether the organization requires an approval: no request can waive it. */
export const isRequired = (rules: readonly ApprovalRule[], tool: CatalogueTool): boolean =>
  rules.some(
    ({ integration, calls }) =>
      (integration === '*' || integration === tool.integration.slug) &&
      (calls === 'all' || !isReadOnly(tool)),
  )

const covers = ({ names, readOnly }: ToolFilter, tool: CatalogueTool): boolean =>
  names.includes(tool.definition.name) || names.includes(tool.name) || (readOnly && isReadOnly(tool))

/**
 * The id of a request for the approval of a call.
 * @param members of the items of its tool. @param json its arguments.
 */
export const approvalIdOf = (ring: KeyRing, owner: Owner, members: Members, json: string): string =>
  newApprovalId(ring, {
    owner,
    server: String(members.server_label),
    tool: String(members.name),
    arguments: canonicalArguments(json),
  })

/** Arguments that mean the same have the same text. Never throws. */
function canonicalArguments(json: string): string {
  try {
    return canonicalJson(JSON.parse(json))
  } catch {
    return json
  }
}

/** The inputs from which the decisions of a request are read. */
interface DecidedContext {
  history: readonly ContextItem[]
  /** The items of the request, and with them the history where `historyIds` names some. */
  input: readonly ContextItem[]
  historyIds: readonly string[]
}

/**
 * The calls that a request approves. Clients send old decisions back with the history, so that those count which the model
 * has not continued after.
 * @throws ApiError invalid_request for a second decision about a request for approval, and for a request that is not in
 *   the context, or not as this service has made it.
 */
export function approvedCalls(
  ring: KeyRing,
  owner: Owner,
  { history, input, historyIds }: DecidedContext,
): ApprovedCall[] {
  const decisions = newDecisions(input, historyIds)
  if (decisions.length === 0) return []
  const requests = new Map<string, ReadRequest>()
  for (const item of [...history, ...input]) {
    const request = item.type === 'mcp_approval_request' ? readApprovalRequest(item) : null
    if (request && isOwn(ring, owner, request)) requests.set(request.requestId, request)
  }
  const decided = new Set<string>()
  return decisions.flatMap(({ requestId, approve }) => {
    const request = requests.get(requestId)
    const shown = requestId.slice(0, 100)
    if (!request) throw invalidRequest(`No approval request found with id ${shown}.`)
    if (decided.has(requestId)) throw invalidRequest(`The approval request ${shown} is decided twice.`)
    decided.add(requestId)
    const { server, tool, arguments: json } = request
    return approve ? [{ requestId, name: toolName(server, tool), server, arguments: json }] : []
  })
}

function newDecisions(input: readonly ContextItem[], historyIds: readonly string[]): ReadDecision[] {
  const known = new Set(historyIds)
  return input
    .slice(input.findLastIndex(isModelOutput) + 1)
    .filter(({ id, type }) => type === 'mcp_approval_response' && !known.has(id))
    .flatMap((item) => readApprovalDecision(item) ?? [])
}

/** Whether this service has requested the approval of this call, with these arguments, from this owner. */
const isOwn = (ring: KeyRing, owner: Owner, { requestId, ...call }: ReadRequest): boolean =>
  isApprovalId(ring, requestId, { owner, ...call, arguments: canonicalArguments(call.arguments) })

/** @param tools of the request, by name. @throws ApiError invalid_request for a call of a tool that is not one of them. */
export function checkOffered(calls: readonly ApprovedCall[], tools: ReadonlyMap<string, ServiceTool>): void {
  const missing = calls.find(({ name, server }) => {
    const tool = tools.get(name)
    return tool?.purpose !== 'integration' || tool.members.server_label !== server
  })
  if (!missing) return
  throw invalidRequest(
    `The approved call needs its tool: list the integration ${missing.server} in tools, with an entry that allows it.`,
  )
}

/** @throws ApiError invalid_request for an approval that was used already. */
export async function checkUnused(
  database: Database,
  owner: Owner,
  calls: readonly ApprovedCall[],
): Promise<void> {
  if (calls.length === 0) return
  const [used] = await selectClaimed(
    database,
    owner,
    calls.map(({ requestId }) => requestId),
  )
  if (used !== undefined)
    throw invalidRequest(`The approval request ${used} was used already.`, 'approval_used')
}
