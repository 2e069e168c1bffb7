import type { CallIdentity } from '../../calls/governed-call.ts'
import type { Principal } from '../../identity/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import { newId } from '../../lib/ids.ts'
import type { OfferedTool } from '../model/offered-tools.ts'
import { creditsLeft } from '../model/response-head.ts'
import type { StoredToolCall } from '../model/tool-result.ts'
import type { ResponseDeps } from '../response-deps.ts'
import { claimApproval } from '../store/approval-claims.store.ts'
import { fromPostgres } from '../store/postgres-away.ts'
import { integrationTool } from '../tools/integrations/offered-tools.ts'
import type { EngineRun } from './engine.ts'
import type { Approval, ToolCaller, ToolRun } from './run-tool-call.ts'
import { failedResult, runToolCall } from './run-tool-call.ts'

/** Calls that run at the same time. */
const MOST_TOGETHER = 6
/** Tools of integrations that a response can offer; OpenAI takes 128 functions. */
const MOST_OFFERED = 96
/** Bytes of the results of one turn as JSON, which are held in memory and sent to the model. */
const MOST_RESULT_BYTES = 4 * 1024 * 1024

/**
 * Executes the server-side calls of a turn in their order; consecutive ones of tools that only read run at the same time,
 * unless the request has `parallel_tool_calls: false`, which not every model obeys.
 * Each is stored before it is dispatched, and with its result: after a restart only a call that may be repeated runs
 * again.
 * @returns the caller with the rights of this moment.
 * @throws ApiError for a call that may have been executed before a restart, the reason of the signal, and what
 * `runToolCall` throws.
 */
export async function runTools(
  deps: ResponseDeps,
  run: EngineRun,
  caller: ToolCaller,
  signal: AbortSignal,
): Promise<Principal> {
  const { state, emitter, tools, request } = run
  const calls = state.toolCalls
  // Under a credit limit each call may cost at most the rest that earlier calls have left.
  const isParallel = request.settings.parallel_tool_calls !== false && request.creditLimit === undefined
  const mayJoin = (name: string) => isParallel && tools.hosted.get(name)?.repeatable === true
  for (const { callId, result } of calls) if (result) emitter.addResult(callId, result)
  let { principal } = caller
  for (const group of groupsOf(calls, mayJoin)) {
    for (const index of group) dispatch(run, calls, index)
    const executing = group.map((index) => execute(deps, run, calls, index, { ...caller, principal }, signal))
    // All of them have ended before a failure is thrown: none runs on unseen.
    const ended = await Promise.allSettled(executing)
    for (const each of ended) if (each.status === 'rejected') throw each.reason
    for (const each of ended) if (each.status === 'fulfilled') principal = each.value ?? principal
    signal.throwIfAborted()
  }
  return principal
}

/** Indexes of the calls that have no result, in groups that run together. */
function groupsOf(calls: readonly StoredToolCall[], mayJoin: (upstreamName: string) => boolean): number[][] {
  const groups: number[][] = []
  let canJoin = false
  for (const [index, { upstreamName, result }] of calls.entries()) {
    if (result !== null) continue
    const last = groups.at(-1)
    const joins = mayJoin(upstreamName)
    if (last && canJoin && joins && last.length < MOST_TOGETHER) last.push(index)
    else groups.push([index])
    canJoin = joins
  }
  return groups
}

function dispatch({ state, tools }: EngineRun, calls: StoredToolCall[], index: number): void {
  const call = calls[index] as StoredToolCall
  const mayRepeat = tools.hosted.get(call.upstreamName)?.repeatable
  if (call.state === 'dispatched' && !mayRepeat) throw interruptedTool()
  const { governedCallId = newId('call') } = call
  calls[index] = { ...call, state: 'dispatched', governedCallId }
  state.storeToolCall(index, calls[index])
}

/** @returns the caller with the rights of this moment. */
async function execute(
  deps: ResponseDeps,
  run: EngineRun,
  calls: StoredToolCall[],
  index: number,
  caller: ToolCaller,
  signal: AbortSignal,
): Promise<Principal> {
  const { state, request, tools, emitter } = run
  const call = calls[index] as StoredToolCall
  const callId = call.governedCallId ?? newId('call')
  const identity = { ...request.identity, callId, at: deps.clock() }
  const tool = tools.hosted.get(call.upstreamName)
  const approval = await approvalFor(deps, run, call, identity)
  const left = creditsLeft(request, state.known)
  const made = await runToolCall(deps, tool, { call, identity, caller, approval, creditsLeft: left }, signal)
  storeClosing(deps, state, made)
  offer(run, made.found ?? [])
  // An aborted call leaves only its record: its response ends, and its item is incomplete.
  signal.throwIfAborted()
  const result = withinTurn(calls, made)
  calls[index] = { ...call, state: 'done', result }
  state.storeToolCall(index, calls[index])
  emitter.addResult(call.callId, result)
  return made.principal
}

/**
 * Uses the approval of a call before the call is made: one that ends in between is not made, here or anywhere else.
 * @throws ApiError while Postgres is away, and nothing is called.
 */
async function approvalFor(
  { database }: ResponseDeps,
  { owner, state }: EngineRun,
  { approvalRequestId: requestId }: StoredToolCall,
  { callId, at }: CallIdentity,
): Promise<Approval> {
  if (requestId === undefined) return 'none'
  const { responseId } = state.known
  const claim = { requestId, responseId, callId, at }
  return (await fromPostgres(database, claimApproval(database, owner, claim))) ? 'given' : 'used'
}

/** Offers tools that a search has found. They are stored before its result: a model that reads of a tool can call it. */
function offer({ state, request, tools }: EngineRun, found: readonly OfferedTool[]): void {
  const { integrations } = request
  if (!integrations) return
  const added = found.filter(({ tool }) => !tools.has(tool.name))
  for (const offered of added.slice(0, MOST_OFFERED - integrations.offered.length)) {
    integrations.offered.push(offered)
    tools.offer(integrationTool(offered))
  }
  if (added.length > 0) state.replaceRequest(request)
}

/** The outcome is stored before the ledger gets it: a lost close is repeated. */
function storeClosing(deps: ResponseDeps, state: EngineRun['state'], { closing }: ToolRun): void {
  if (!closing) return
  const { unsettled = [], cost = 0 } = state.head ?? {}
  state.change({ unsettled: [...unsettled, closing], cost: cost + closing.outcome.cost })
  deps.waitUntil(state.settleCalls())
}

/** The result, as far as the results of its turn have room for it. */
function withinTurn(calls: readonly StoredToolCall[], { result }: ToolRun): ToolRun['result'] {
  const bytes = calls.reduce((sum, call) => sum + (call.result ? JSON.stringify(call.result).length : 0), 0)
  if (bytes + JSON.stringify(result).length <= MOST_RESULT_BYTES) return result
  return failedResult(
    'The tool was executed, but the results of this turn have no room left. Ask for less at once.',
  )
}

/** The call may have been executed, and a second execution could do harm. */
const interruptedTool = () =>
  new ApiError('internal', 'The response was interrupted while a tool ran.', { code: 'server_error' })
