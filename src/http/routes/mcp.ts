import { Hono } from 'hono'
import { connectOwnAccount } from '../../admin/connections/connect/connect-own-account.ts'
import { setDefaultConnection } from '../../admin/connections/default-connection.ts'
import { agentOperations } from '../../agents/agent-operations.ts'
import { mayUse } from '../../calls/access.ts'
import { settle } from '../../calls/governed-call.ts'
import { modelTarget } from '../../calls/target.ts'
import { loadModelCatalogue } from '../../gateway/catalogue/model-catalogue.ts'
import type { Principal } from '../../identity/principal.ts'
import { answerMessage, inEra, TOOL_CALL } from '../../integrations/mcp-server/answer-message.ts'
import { callFoundTool } from '../../integrations/mcp-server/call-tool-request.ts'
import {
  findCallableTool,
  type McpDeps,
  readToolCall,
  type ToolCallRequest,
} from '../../integrations/mcp-server/find-callable-tool.ts'
import { integrationFilter } from '../../integrations/mcp-server/integration-filter.ts'
import {
  answerText,
  type RequestId,
  type RpcReply,
  statusOf,
} from '../../integrations/mcp-server/json-rpc.ts'
import {
  type ReadMessage,
  type RpcMessage,
  readMessage,
  tooManyValues,
} from '../../integrations/mcp-server/read-message.ts'
import type { UsableModel } from '../../integrations/platform-tools/account-tools.ts'
import { hasTooManyValues } from '../../lib/json-values.ts'
import { runSlices } from '../../lib/slices.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { readGovernedBody, requireRoom } from '../governed-body.ts'
import { requireMcpAccess, requireMcpRequest } from '../mcp-gate.ts'
import { admitRead, settleFailedRead, settleRead, whileOpen } from '../middleware/admission.ts'
import { changeBy } from '../own-change.ts'
import { ownOrigin } from '../own-origin.ts'
import { rateLimitHeaders } from '../rate-limit-headers.ts'
import { requestIdHeaders } from '../surfaces.ts'

/**
 * The MCP gateway (interface: MCP gateway). A request is one JSON-RPC message and has one audit record: for a tool call the
 * record of the tool, for any other message a read.
 */
export const mcpRoutes = new Hono<AppEnv>().post('/v1/mcp', async (context) => {
  await requireMcpRequest(context)
  const held = await readGovernedBody(context)
  try {
    const isTooLarge = await runSlices(hasTooManyValues(held.bytes))
    const read = isTooLarge ? tooManyValues() : readMessage(held.bytes, context.req.raw.headers)
    // The parsed value is about as large as the bytes: they are freed, and their share of the budget stays.
    held.free()
    return await answer(context, read)
  } finally {
    held.release()
  }
})

function answer(context: AppContext, read: ReadMessage): Promise<Response> {
  if (read.kind === 'refused') {
    return readAnswer(context, { id: read.id, era: 'legacy' }, async () => read.reply)
  }
  const { message } = read
  if (message.id === null) return readAnswer(context, message, async () => null)
  if (message.method === TOOL_CALL) return callAnswer(context, message)
  const filter = integrationFilter(
    new URL(context.req.url).searchParams,
    context.req.raw.headers.get('x-service-integrations'),
  )
  return readAnswer(context, message, () =>
    answerMessage(mcpDeps(context), message, context.var.rights.principal, filter),
  )
}

/** Answers a message that only reads. @param replying begins after the admission; null for a message without an answer. */
async function readAnswer(
  context: AppContext,
  { id, era }: Pick<RpcMessage, 'id' | 'era'>,
  replying: () => Promise<RpcReply | null>,
): Promise<Response> {
  const call = await admitRead(context, false)
  try {
    requireMcpAccess(context)
    const reply = await whileOpen(context, call, replying)
    if (reply === null) {
      settleRead(context, call, 202)
      return new Response(null, { status: 202, headers: answerHeaders(context) })
    }
    if (reply.kind === 'error') context.set('errorCode', reply.error.auditCode)
    settleRead(context, call, statusOf(reply))
    return jsonAnswer(context, id, inEra(reply, era))
  } catch (error) {
    settleFailedRead(context, call, error)
    throw error
  }
}

/** Answers a tool call with the governed call of its tool. */
async function callAnswer(context: AppContext, message: RpcMessage): Promise<Response> {
  const deps = mcpDeps(context)
  const { id, era } = message
  const request = readToolCall(message)
  if ('kind' in request) return readAnswer(context, message, async () => request)
  const found = await findCurrentTool(context, deps, request)
  if (found.kind === 'absent') return readAnswer(context, message, async () => found.reply)
  const { principal } = context.var.rights
  const { identity } = context.var.caller
  const { signal } = context.req.raw
  const called = await callFoundTool(deps, found, { identity, principal }, signal)
  context.set('isRecorded', true)
  context.set('rateLimit', called.rateLimit ?? null)
  const { closing, reply } = called
  if (closing) context.var.deps.waitUntil(settle(deps, closing.call, closing.outcome))
  if (reply.kind === 'refusal') throw reply.error
  return jsonAnswer(context, id, inEra(reply, era))
}

/**
 * Finds a tool. When it is not found, the search is repeated with current rights, because the tool may just have been granted.
 */
async function findCurrentTool(context: AppContext, deps: McpDeps, request: ToolCallRequest) {
  const { principal } = context.var.rights
  const found = await findCallableTool(deps, principal, request)
  if (found.kind !== 'absent') return found
  await requireRoom(context)
  const current = context.var.rights.principal
  return current === principal ? found : findCallableTool(deps, current, request)
}

function jsonAnswer(context: AppContext, id: RequestId | null, reply: RpcReply): Response {
  const headers = { 'content-type': 'application/json', ...answerHeaders(context) }
  return new Response(answerText(id, reply), { status: statusOf(reply), headers })
}

function answerHeaders(context: AppContext): Record<string, string> {
  const requestId = context.get('requestId')
  const ids = requestIdHeaders(context.get('surface')).map((name) => [name, requestId])
  return { ...Object.fromEntries(ids), ...rateLimitHeaders(context) }
}

function mcpDeps(context: AppContext): McpDeps {
  const { deps, caller } = context.var
  // A change that a tool of the platform makes is the caller's own.
  const change = () => changeBy(context, caller.organizationId, caller.identity.actor)
  return {
    ...deps,
    usableModels: (principal) => usableModels(deps, principal),
    setDefaultConnection: (...choice) => setDefaultConnection(change(), ...choice),
    connectAccount: (member, integration) =>
      connectOwnAccount({ scope: change(), member }, deps, {
        integration,
        origin: ownOrigin(context),
      }),
    agents: agentOperations(deps, change),
  }
}

async function usableModels(deps: AppContext['var']['deps'], principal: Principal): Promise<UsableModel[]> {
  const { models } = await loadModelCatalogue(deps)
  return [...models.values()]
    .filter(({ id }) => mayUse(principal, modelTarget(id)))
    .map(({ id, contextWindow, maxOutputTokens, capabilities, prices }) => ({
      id,
      contextWindow,
      maxOutputTokens,
      capabilities,
      inputPrice: prices.input ?? null,
      outputPrice: prices.output ?? null,
    }))
}
