/**
 * The one door to a tool: access, policies on arguments and result, limits, credits and audit of one tool call. It knows
 * nothing of the tool but its name, its price and its time.
 */

import { inspectJson } from '../dlp/json-inspection.ts'
import type { CallPolicy } from '../dlp/policy/call-policy.ts'
import type { RenewDeps } from '../identity/identify.ts'
import { isExpired, type Principal } from '../identity/principal.ts'
import { type CallOutcome, outcomeOf } from '../ledger/audit-record.ts'
import type { RateLimit } from '../ledger/contract.ts'
import { ApiError, invalidRequest } from '../lib/api-error.ts'
import { joinBytes } from '../lib/byte-edits.ts'
import { JsonSyntaxError } from '../lib/json-visitor.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { inTurns } from '../lib/slices.ts'
import type { InspectionCounts } from '../wire/records.ts'
import { mayUse } from './access.ts'
import {
  admit,
  type CallerRights,
  type CallIdentity,
  type GovernanceDeps,
  type GovernedCall,
  type Refused,
  refuse,
  type Stale,
} from './governed-call.ts'
import { type PolicyDeps, policyFor } from './policy-for-call.ts'
import { noLongerAllowed, withCurrentRights } from './renew-rights.ts'
import type { CallTarget } from './target.ts'
import {
  type Executed,
  failed,
  failedAnswer,
  inspectedAnswer,
  type OpaqueContent,
  type ToolAnswer,
  toolFailed,
} from './tool-answer.ts'

export type { OpaqueContent, ToolAnswer } from './tool-answer.ts'

export type ToolCallDeps = GovernanceDeps & PolicyDeps & RenewDeps

/** What is called, apart from the tool. */
export interface ToolRequest {
  identity: CallIdentity
  principal: Principal
  /** JSON, as the model or the client wrote it. */
  arguments: string
  /** Milliseconds after which it is aborted. */
  timeLimit: number
  /** Whether it counts against the limits; false where it is left out: the request that the call belongs to is counted. */
  counted?: boolean
  /** `CallRequest.creditsLeft`. */
  creditsLeft?: number | undefined
}

type ToolTarget = Exclude<CallTarget, { kind: 'model' }>

/** A tool, and how it is executed. */
export interface ToolExecution {
  target: ToolTarget
  /** Micro-credits that it costs when it was executed. */
  price: number
  /** Bytes of a result as JSON; `MOST_RESULT_BYTES` where it is left out. */
  longestResult?: number
  /** Finds content in a result that no policy can read. None where it is left out. */
  opaqueContent?(members: ToolAnswer['members']): readonly OpaqueContent[]
  /**
   * Executes the tool. An ApiError is the answer for the model, by its message; any other error is logged.
   * @param arguments as the policies left them. @param principal with the rights under which the call was admitted.
   */
  execute(arguments_: string, principal: Principal, signal: AbortSignal): Promise<ToolAnswer>
}

export type ToolCall = ToolRequest & ToolExecution

/** A tool that was found for the rights of a caller, or why it cannot be called. */
export type Preparation = ToolExecution | { target: ToolTarget; error: ApiError }

export interface ToolCallResult {
  answer: ToolAnswer
  /** What refused the call, or made it fail; null for an answer of the tool. */
  error: ApiError | null
  /** With the rights of this moment. */
  principal: Principal
  /** The caller's limits after the call, where the ledger counted it. */
  rateLimit: RateLimit | undefined
  /** The call with its outcome, for the caller to store and settle; null for a refused one, which is recorded. */
  closing: { call: GovernedCall; outcome: CallOutcome } | null
  /** As the policies left them; null for a refused call. */
  arguments: string | null
}

/** After its time a call that was not settled is settled by the ledger. */
const SETTLING_MS = 30_000

/**
 * Calls a tool. A refusal is recorded, and is an answer for the model, which may continue without the tool. Once the signal is
 * aborted, or the time is over, the answer does not wait for the tool.
 * @throws ApiError unauthorized for a caller that may not call any more; what the ledger or Postgres throws: nothing was
 * executed then.
 */
export const callTool = (deps: ToolCallDeps, call: ToolCall, signal: AbortSignal): Promise<ToolCallResult> =>
  callPreparedTool(deps, call, async () => call, signal)

/**
 * Calls a tool that depends on the rights of its caller, as `callTool`.
 * @param prepare finds the tool for a principal. It is called again if the ledger calls the rights stale.
 */
export async function callPreparedTool(
  deps: ToolCallDeps,
  request: ToolRequest,
  prepare: (principal: Principal) => Promise<Preparation>,
  signal: AbortSignal,
): Promise<ToolCallResult> {
  const admitted = await admitToolCall(deps, request, prepare)
  const { principal, rateLimit } = admitted
  if (admitted.kind === 'refused') {
    const { error } = admitted
    return {
      answer: failedAnswer(error.message),
      error,
      principal,
      rateLimit,
      closing: null,
      arguments: null,
    }
  }
  const { plan, opened } = admitted
  const { target, price } = plan.execution
  const executed = await executeTool(plan, principal, request.timeLimit, signal)
  const outcome = outcomeOf(opened.opening, deps.clock(), {
    ...executed.outcome,
    cost: executed.isCharged ? price : 0,
    dlp: dlpOf(plan.policy),
    request: plan.counts,
    connectionId: target.kind === 'integration' ? target.connectionId : null,
  })
  const { answer, error } = executed
  const closing = { call: opened, outcome }
  return { answer, error, principal, rateLimit, closing, arguments: plan.arguments }
}

/** A call whose arguments may be executed. */
interface ToolPlan {
  execution: ToolExecution
  policy: CallPolicy
  arguments: string
  counts: InspectionCounts
}

const admitToolCall = (
  deps: ToolCallDeps,
  call: ToolRequest,
  prepare: (principal: Principal) => Promise<Preparation>,
) =>
  withCurrentRights(
    deps,
    { principal: call.principal, catalogueEpoch: null, learned: null },
    (rights): Promise<AdmittedTool | RefusedTool | Stale> => planAndAdmit(deps, call, rights, prepare),
  )

interface AdmittedTool {
  kind: 'admitted'
  plan: ToolPlan
  opened: GovernedCall
  principal: Principal
  rateLimit: RateLimit | undefined
}

type RefusedTool = Refused & { principal: Principal; rateLimit: RateLimit | undefined }

async function planAndAdmit(
  deps: ToolCallDeps,
  call: ToolRequest,
  rights: CallerRights,
  prepare: (principal: Principal) => Promise<Preparation>,
): Promise<AdmittedTool | RefusedTool | Stale> {
  const { principal } = rights
  // Expiry changes no epoch.
  if (isExpired(principal, deps.clock())) throw noLongerAllowed('expired')
  const preparation = await prepare(principal)
  const plan = await planOf(deps, call, principal, preparation)
  const request = {
    identity: call.identity,
    rights,
    target: preparation.target,
    reserve: 'error' in plan ? 0 : plan.execution.price,
    leaseMilliseconds: call.timeLimit + SETTLING_MS,
    estimate: null,
    counted: call.counted ?? false,
    creditsLeft: call.creditsLeft,
    advice: 'Call fewer tools',
  }
  if ('error' in plan) {
    const refused = await refuse(deps, request, plan.error, plan)
    return refused.kind === 'stale' ? refused : { ...refused, principal, rateLimit: refused.rateLimit }
  }
  const admission = await admit(deps, request)
  if (admission.kind === 'stale') return admission
  const { rateLimit } = admission
  if (admission.kind === 'refused') return { ...admission, principal, rateLimit }
  return { kind: 'admitted', plan, opened: admission.call, principal, rateLimit }
}

/** A call that may not be made, with what its record states. */
interface RefusedToolPlan {
  error: ApiError
  target: CallTarget
  dlp: CallOutcome['dlp']
}

/**
 * @throws ApiError internal when the policies cannot be read, and what their application throws: nothing passes then. For a
 *   call that is a request of its own it is a refusal, so that it is recorded with its tool.
 */
async function planOf(
  deps: ToolCallDeps,
  call: ToolRequest,
  principal: Principal,
  preparation: Preparation,
): Promise<ToolPlan | RefusedToolPlan> {
  const { target } = preparation
  if ('error' in preparation) return { target, dlp: null, error: preparation.error }
  if (!mayUse(principal, target)) {
    const message = `The tool ${target.id} is switched off for this caller.`
    return { target, dlp: null, error: new ApiError('forbidden', message, { code: TOOL_NOT_ALLOWED }) }
  }
  const policy = await policyFor(deps, principal, target).catch((error: unknown) => {
    if (call.counted && error instanceof ApiError) return error
    throw error
  })
  if (policy instanceof ApiError) return { target, dlp: null, error: policy }
  const inspection = policy.requestInspection()
  try {
    const source = encoder.encode(call.arguments)
    const { pieces } = await inTurns(inspectJson(inspection, source, 'tool_arguments'))
    const inspected = decoder.decode(joinBytes(pieces))
    return { execution: preparation, policy, arguments: inspected, counts: inspection.counts }
  } catch (error) {
    const refusal = error instanceof JsonSyntaxError ? notJson() : error
    const isDecided = refusal instanceof ApiError && refusal.kind !== 'internal'
    if (!isDecided && !call.counted) throw error
    if (isDecided) return { target, error: refusal, dlp: dlpOf(policy) }
    logEvent('error', 'dlp_failed', { tool: target.id, error: errorText(error) })
    return { target, error: policyNotApplied(), dlp: dlpOf(policy) }
  }
}

/** The code of a tool that is not one of the caller's. */
export const TOOL_NOT_ALLOWED = 'tool_not_allowed'

const notJson = () => invalidRequest('The arguments are not valid JSON.')

/** Interface, Errors, MCP gateway. */
const policyNotApplied = () =>
  toolFailed('The data-loss prevention policy could not be applied to the arguments.', 'dlp_unavailable')

const dlpOf = (policy: CallPolicy) => ({ policyVersion: policy.version, findings: policy.findings() })

async function executeTool(
  plan: ToolPlan,
  principal: Principal,
  timeLimit: number,
  signal: AbortSignal,
): Promise<Executed> {
  const { execution } = plan
  const { longestResult, opaqueContent } = execution
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), timeLimit)
  const stop = AbortSignal.any([signal, limit.signal])
  try {
    const executing = execution.execute(plan.arguments, principal, stop)
    // A tool that ignores its signal is left behind.
    executing.catch(() => {})
    const answer = await Promise.race([executing, rejectionOf(stop)])
    const rules = { tool: execution.target.id, longestResult, opaqueContent }
    const inspected = await inTurns(inspectedAnswer(plan.policy, rules, answer))
    return { ...inspected, isCharged: answer.status === 'completed' }
  } catch (error) {
    if (signal.aborted) return { ...failed(callAborted(), 499), isCharged: true }
    if (limit.signal.aborted) return { ...failed(timedOut(timeLimit)), isCharged: true }
    if (error instanceof ApiError) return failed(error)
    logEvent('error', 'tool_failed', { tool: execution.target.id, error: errorText(error) })
    return failed(toolFailed('The tool failed.', 'tool_failed'))
  } finally {
    clearTimeout(timer)
  }
}

const callAborted = () => toolFailed('The call was aborted.', 'client_left')

const timedOut = (timeLimit: number) =>
  toolFailed(
    `The tool took longer than ${timeLimit / 1_000} seconds. It may have been executed.`,
    'tool_timed_out',
  )

/** Rejects when the signal is aborted; never resolves. */
const rejectionOf = (signal: AbortSignal): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>()
  if (signal.aborted) reject(signal.reason)
  else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  return promise
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
