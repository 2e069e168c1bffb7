/**
 * The only path to a tool: access, policies on arguments and result, limits, credits and audit of one tool call. It
 * knows only name, price and time-out of the tool.
 */

import { inspectJson } from '../dlp/json-inspection.ts'
import type { CallPolicy } from '../dlp/policy/call-policy.ts'
import type { RenewDeps } from '../identity/identify.ts'
import { isExpired, type Principal } from '../identity/principal.ts'
import { type CallOutcome, callOutcome } from '../ledger/audit-record.ts'
import type { RateLimit } from '../ledger/contract.ts'
import { ApiError, invalidRequest } from '../lib/api-error.ts'
import { joinBytes } from '../lib/byte-edits.ts'
import { JsonSyntaxError } from '../lib/json-visitor.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { runSlices } from '../lib/slices.ts'
import type { InspectionCounts } from '../wire/records.ts'
import { mayUse } from './access.ts'
import {
  admit,
  type CallerRights,
  type CallIdentity,
  type GovernanceDeps,
  type GovernedCall,
  type Refused,
  refuseAs,
  type Stale,
} from './governed-call.ts'
import { type PolicyDeps, policyFor } from './policy-for-call.ts'
import { noLongerAllowed, withCurrentRights } from './renew-rights.ts'
import type { CallTarget } from './target.ts'
import {
  type Executed,
  failed,
  inspectedAnswer,
  type OpaqueContent,
  type ToolAnswer,
  type ToolEnd,
} from './tool-answer.ts'
import { failureOf, refusedByPolicy, renderFailure, type ToolFailure } from './tool-failure.ts'

export type { OpaqueContent, ToolAnswer } from './tool-answer.ts'

export type ToolCallDeps = GovernanceDeps & PolicyDeps & RenewDeps

/** The request of a call, without its tool. */
interface ToolRequest {
  identity: CallIdentity
  principal: Principal
  /** JSON, as the model or the client wrote it. */
  arguments: string
  /** Milliseconds after which it is aborted. */
  timeLimit: number
  /** Whether the call counts against the limits. False when left out, because the request that the call belongs to is counted. */
  counted?: boolean
  /** `CallRequest.creditsLeft`. */
  creditsLeft?: number | undefined
}

type ToolTarget = Exclude<CallTarget, { kind: 'model' }>

/** A tool, and how it is executed. */
interface ToolExecution<Beside = undefined> {
  target: ToolTarget
  /** Micro-credits that it costs when it was executed. */
  price: number
  /** Bytes of a result as JSON; `MOST_RESULT_BYTES` where it is left out. */
  longestResult?: number
  /** Finds content in a result that no policy can inspect. When left out, the result has none. */
  opaqueContent?(members: ToolAnswer['members']): readonly OpaqueContent[]
  /**
   * Executes the tool. An ApiError is a failure that states its message; any other error is logged.
   * @param arguments as the policies left them. @param principal with the rights under which the call was admitted.
   */
  execute(
    arguments_: string,
    principal: Principal,
    signal: AbortSignal,
  ): Promise<ToolAnswer<Beside> | ToolFailure>
}

type ToolCall<Beside = undefined> = ToolRequest & ToolExecution<Beside>

/** A tool that was found for the rights of a caller, or why it cannot be called. */
export type Preparation<Beside = undefined> =
  | ToolExecution<Beside>
  | { target: ToolTarget; failure: ToolFailure }

export interface ToolCallResult<Beside = undefined> {
  end: ToolEnd<Beside>
  /** The caller, with its current rights. */
  principal: Principal
  /** The caller's limits after the call, where the ledger counted it. */
  rateLimit: RateLimit | undefined
  /** The call with its outcome, for the caller to store and settle; null for a refused one, which is recorded. */
  closing: { call: GovernedCall; outcome: CallOutcome } | null
  /** The arguments after the policies were applied; null for a refused call. */
  arguments: string | null
}

/** Time for settling a call. The ledger settles a call that is still open afterwards. */
const SETTLING_MS = 30_000

/**
 * Calls a tool. A refusal is recorded, and is an answer for the model, which may continue without the tool. Once the signal is
 * aborted, or the time is over, the answer does not wait for the tool.
 * @throws ApiError unauthorized for a caller that may not call any more; what the ledger or Postgres throws: nothing was
 * executed then.
 */
export const callTool = <Beside = undefined>(
  deps: ToolCallDeps,
  call: ToolCall<Beside>,
  signal: AbortSignal,
): Promise<ToolCallResult<Beside>> => callPreparedTool(deps, call, async () => call, signal)

/**
 * `callTool` for a tool that depends on the rights of its caller.
 * @param prepare finds the tool for a principal. It is called again if the ledger calls the rights stale.
 */
export async function callPreparedTool<Beside>(
  deps: ToolCallDeps,
  request: ToolRequest,
  prepare: (principal: Principal) => Promise<Preparation<Beside>>,
  signal: AbortSignal,
): Promise<ToolCallResult<Beside>> {
  const admitted = await admitToolCall(deps, request, prepare)
  const { principal, rateLimit } = admitted
  if (admitted.kind === 'refused') {
    return { end: admitted.failure, principal, rateLimit, closing: null, arguments: null }
  }
  const { plan, opened } = admitted
  const { target, price } = plan.execution
  const executed = await executeTool(plan, principal, request.timeLimit, signal)
  const outcome = callOutcome(opened.opening, deps.clock(), {
    ...executed.outcome,
    cost: executed.isCharged ? price : 0,
    dlp: plan.policy.record(),
    request: plan.counts,
    connectionId: target.kind === 'integration' ? target.connectionId : null,
  })
  const closing = { call: opened, outcome }
  return { end: executed.end, principal, rateLimit, closing, arguments: plan.arguments }
}

/** A call whose arguments may be executed. */
interface ToolPlan<Beside> {
  execution: ToolExecution<Beside>
  policy: CallPolicy
  arguments: string
  counts: InspectionCounts
}

const admitToolCall = <Beside>(
  deps: ToolCallDeps,
  call: ToolRequest,
  prepare: (principal: Principal) => Promise<Preparation<Beside>>,
) =>
  withCurrentRights(
    deps,
    { principal: call.principal, catalogueEpoch: null, learned: null },
    (rights): Promise<AdmittedTool<Beside> | RefusedTool | Stale> =>
      planAndAdmit(deps, call, rights, prepare),
  )

interface AdmittedTool<Beside> {
  kind: 'admitted'
  plan: ToolPlan<Beside>
  opened: GovernedCall
  principal: Principal
  rateLimit: RateLimit | undefined
}

interface RefusedTool {
  kind: 'refused'
  failure: ToolFailure
  principal: Principal
  rateLimit: RateLimit | undefined
}

async function planAndAdmit<Beside>(
  deps: ToolCallDeps,
  call: ToolRequest,
  rights: CallerRights,
  prepare: (principal: Principal) => Promise<Preparation<Beside>>,
): Promise<AdmittedTool<Beside> | RefusedTool | Stale> {
  const { principal } = rights
  // Expiry changes no epoch.
  if (isExpired(principal, deps.clock())) throw noLongerAllowed('expired')
  const preparation = await prepare(principal)
  const plan = await planOf(deps, call, principal, preparation)
  const request = {
    identity: call.identity,
    rights,
    target: preparation.target,
    reserve: 'failure' in plan ? 0 : plan.execution.price,
    leaseMilliseconds: call.timeLimit + SETTLING_MS,
    estimate: null,
    counted: call.counted ?? false,
    creditsLeft: call.creditsLeft,
    advice: 'Call fewer tools',
  }
  if ('failure' in plan) {
    const refused = await refuseAs(deps, request, renderFailure(plan.failure), plan)
    if (refused.kind === 'stale') return refused
    // A limit that is reached replaces the failure.
    const failure = refused.kind === 'refused' ? refusedBy(refused) : plan.failure
    return { kind: 'refused', failure, principal, rateLimit: refused.rateLimit }
  }
  const admission = await admit(deps, request)
  if (admission.kind === 'stale') return admission
  const { rateLimit } = admission
  if (admission.kind === 'refused') {
    return { kind: 'refused', failure: refusedBy(admission), principal, rateLimit }
  }
  return { kind: 'admitted', plan, opened: admission.call, principal, rateLimit }
}

const refusedBy = ({ error }: Refused): ToolFailure => ({ kind: 'refused', error })

/** A call that may not be made, with what its record states. */
interface RefusedToolPlan {
  failure: ToolFailure
  target: CallTarget
  dlp: CallOutcome['dlp']
}

/**
 * Decides the plan of policies.
 * @throws ApiError internal when the policies cannot be read, and any error of their application: the call is not made
 * then. A call that is a request of its own is refused instead, so that it is recorded with its tool.
 */
async function planOf<Beside>(
  deps: ToolCallDeps,
  call: ToolRequest,
  principal: Principal,
  preparation: Preparation<Beside>,
): Promise<ToolPlan<Beside> | RefusedToolPlan> {
  const { target } = preparation
  if ('failure' in preparation) return { target, dlp: null, failure: preparation.failure }
  if (!mayUse(principal, target)) {
    return { target, dlp: null, failure: { kind: 'tool_forbidden', tool: target.id } }
  }
  const policy = await policyFor(deps, principal, target).catch((error: unknown) => {
    if (call.counted && error instanceof ApiError) return null
    throw error
  })
  if (policy === null) return { target, dlp: null, failure: { kind: 'dlp_unavailable', part: null } }
  const inspection = policy.requestInspection()
  try {
    const source = encoder.encode(call.arguments)
    const { pieces } = await runSlices(inspectJson(inspection, source, 'tool_arguments'))
    const inspected = decoder.decode(joinBytes(pieces))
    return { execution: preparation, policy, arguments: inspected, counts: inspection.counts }
  } catch (error) {
    const refusal = error instanceof JsonSyntaxError ? notJson() : error
    if (refusal instanceof ApiError && refusal.kind !== 'internal') {
      return { target, failure: refusedByPolicy('arguments', refusal), dlp: policy.record() }
    }
    if (!call.counted) throw error
    logEvent('error', 'dlp_failed', { tool: target.id, error: errorText(error) })
    return { target, failure: { kind: 'dlp_unavailable', part: 'arguments' }, dlp: policy.record() }
  }
}

const notJson = () => invalidRequest('The arguments are not valid JSON.')

async function executeTool<Beside>(
  plan: ToolPlan<Beside>,
  principal: Principal,
  timeLimit: number,
  signal: AbortSignal,
): Promise<Executed<Beside>> {
  const { execution } = plan
  const { longestResult, opaqueContent } = execution
  const tool = execution.target.id
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), timeLimit)
  const stop = AbortSignal.any([signal, limit.signal])
  try {
    const executing = execution.execute(plan.arguments, principal, stop)
    // A tool that ignores its signal is left behind.
    executing.catch(() => {})
    const answer = await Promise.race([executing, rejectionOf(stop)])
    if ('kind' in answer) return failed(stopped(signal, limit.signal, timeLimit) ?? answer)
    return await runSlices(inspectedAnswer(plan.policy, { tool, longestResult, opaqueContent }, answer))
  } catch (error) {
    const failure = stopped(signal, limit.signal, timeLimit)
    if (failure) return failed(failure)
    if (error instanceof ApiError) return failed(failureOf(error))
    logEvent('error', 'tool_failed', { tool, error: errorText(error) })
    return failed({ kind: 'tool_broken' })
  } finally {
    clearTimeout(timer)
  }
}

/** Why a call was given up; null for one that was not. */
function stopped(caller: AbortSignal, limit: AbortSignal, milliseconds: number): ToolFailure | null {
  if (caller.aborted) return { kind: 'aborted' }
  return limit.aborted ? { kind: 'timed_out', milliseconds } : null
}

/** Rejects when the signal is aborted; never resolves. */
const rejectionOf = (signal: AbortSignal): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>()
  if (signal.aborted) reject(signal.reason)
  else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  return promise
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
