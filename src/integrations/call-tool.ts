/**
 * The one door to a tool: access, policies on arguments and result, limits, credits and audit of one tool call. It knows
 * nothing of the tool but its name, its price and its time.
 */
import { mayUse } from '../governance/access.ts'
import { type CallOutcome, type InspectionCounts, outcomeOf } from '../governance/audit-record.ts'
import { inspectJson } from '../governance/dlp/json-inspection.ts'
import type { CallPolicy } from '../governance/dlp/policy/call-policy.ts'
import { type PolicyDeps, policyFor } from '../governance/dlp/policy/policy-for-call.ts'
import {
  admit,
  type CallIdentity,
  type CallRequest,
  errorCodeOf,
  type GovernanceDeps,
  type GovernedCall,
  refuse,
} from '../governance/governed-call.ts'
import type { RenewDeps } from '../governance/identity/identify.ts'
import { isExpired, type Principal } from '../governance/principal.ts'
import { MOST_ADMISSIONS, noLongerAllowed, renewRights } from '../governance/renew-rights.ts'
import type { CallTarget } from '../governance/target.ts'
import { ApiError, invalidRequest } from '../lib/api-error.ts'
import { joinBytes } from '../lib/byte-edits.ts'
import { JsonSyntaxError } from '../lib/json-visitor.ts'
import { errorText, logEvent } from '../lib/log.ts'

export type ToolCallDeps = GovernanceDeps & PolicyDeps & RenewDeps

/** What a tool gives back: members that are JSON. */
export interface ToolAnswer {
  status: 'completed' | 'failed'
  members: Record<string, unknown>
}

export interface ToolCall {
  identity: CallIdentity
  principal: Principal
  target: Exclude<CallTarget, { kind: 'model' }>
  /** JSON, as the model or the client wrote it. */
  arguments: string
  /** Micro-credits that it costs when it was executed. */
  price: number
  /** Milliseconds after which it is aborted. */
  timeLimit: number
  /**
   * Executes the tool. An ApiError is the answer for the model, by its message; any other error is logged.
   * @param arguments as the policies left them. @param principal with the rights under which the call was admitted.
   */
  execute(arguments_: string, principal: Principal, signal: AbortSignal): Promise<ToolAnswer>
}

export interface ToolCallResult {
  answer: ToolAnswer
  /** With the rights of this moment. */
  principal: Principal
  /** The call with its outcome, for the caller to store and settle; null for a refused one, which is recorded. */
  closing: { call: GovernedCall; outcome: CallOutcome } | null
  /** As the policies left them; null for a refused call. */
  arguments: string | null
}

/** Bytes of a result as JSON. */
const MOST_RESULT_BYTES = 1024 * 1024

/** After its time a call that was not settled is settled by the ledger. */
const SETTLING_MS = 30_000

/**
 * Calls a tool. A refusal is recorded, and is an answer for the model, which may continue without the tool. Once the signal is
 * aborted, or the time is over, the answer does not wait for the tool.
 * @throws ApiError unauthorized for a caller that may not call any more; what the ledger or Postgres throws: nothing was
 * executed then.
 */
export async function callTool(
  deps: ToolCallDeps,
  call: ToolCall,
  signal: AbortSignal,
): Promise<ToolCallResult> {
  const admitted = await admitToolCall(deps, call)
  const { principal } = admitted
  if (admitted.kind === 'refused') {
    return { answer: failedAnswer(admitted.error.message), principal, closing: null, arguments: null }
  }
  const { plan, opened } = admitted
  const executed = await executeTool(call, plan, principal, signal)
  const outcome = outcomeOf(opened.opening, deps.clock(), {
    ...executed.outcome,
    cost: executed.isCharged ? call.price : 0,
    dlp: dlpOf(plan.policy),
    request: plan.counts,
    connectionId: call.target.kind === 'integration' ? call.target.connectionId : null,
  })
  const { answer } = executed
  return { answer, principal, closing: { call: opened, outcome }, arguments: plan.arguments }
}

/** A call whose arguments may be executed. */
interface ToolPlan {
  policy: CallPolicy
  arguments: string
  counts: InspectionCounts
}

async function admitToolCall(deps: ToolCallDeps, call: ToolCall) {
  let rights = { principal: call.principal, catalogueEpoch: null, learned: null } as CallRequest['rights']
  for (let admissions = 0; admissions < MOST_ADMISSIONS; admissions++) {
    const { principal } = rights
    // Expiry changes no epoch.
    if (isExpired(principal, deps.clock())) throw noLongerAllowed('expired')
    const request = {
      identity: call.identity,
      rights,
      target: call.target,
      reserve: call.price,
      leaseMilliseconds: call.timeLimit + SETTLING_MS,
      estimate: null,
      // The request that the call belongs to is counted.
      counted: false,
      advice: 'Call fewer tools',
    }
    const plan = await planOf(deps, call, principal)
    const admission =
      'error' in plan ? await refuse(deps, request, plan.error, plan) : await admit(deps, request)
    if (admission.kind === 'refused') return { kind: 'refused' as const, error: admission.error, principal }
    if (admission.kind === 'admitted' && !('error' in plan)) {
      return { kind: 'admitted' as const, plan, opened: admission.call, principal }
    }
    if (admission.kind === 'stale') rights = await renewRights(deps, rights, admission)
  }
  throw new ApiError('internal', 'The rights of the caller keep changing.')
}

/** A call that may not be made, with what its record states. */
interface RefusedToolPlan {
  error: ApiError
  target: CallTarget
  dlp: CallOutcome['dlp']
}

/** @throws ApiError internal when the policies cannot be read: nothing passes then. */
async function planOf(
  deps: ToolCallDeps,
  call: ToolCall,
  principal: Principal,
): Promise<ToolPlan | RefusedToolPlan> {
  const { target } = call
  if (!mayUse(principal, target)) {
    const message = `The tool ${target.id} is switched off for this caller.`
    return { target, dlp: null, error: new ApiError('forbidden', message, { code: 'tool_not_allowed' }) }
  }
  const policy = await policyFor(deps, principal, target)
  const inspection = policy.requestInspection()
  try {
    const { pieces } = inspectJson(inspection, encoder.encode(call.arguments), 'tool_arguments')
    return { policy, arguments: decoder.decode(joinBytes(pieces)), counts: inspection.counts }
  } catch (error) {
    const refusal = error instanceof JsonSyntaxError ? NOT_JSON : error
    if (!(refusal instanceof ApiError) || refusal.kind === 'internal') throw error
    return { target, error: refusal, dlp: dlpOf(policy) }
  }
}

const NOT_JSON = invalidRequest('The arguments are not valid JSON.')

const dlpOf = (policy: CallPolicy) => ({ policyVersion: policy.version, findings: policy.findings() })

interface Executed {
  answer: ToolAnswer
  /** A provider charges for an answer, whatever becomes of it, and possibly for a request that was given up. */
  isCharged: boolean
  outcome: Pick<CallOutcome, 'status' | 'errorCode' | 'response'>
}

async function executeTool(
  { target, timeLimit, execute }: ToolCall,
  plan: ToolPlan,
  principal: Principal,
  signal: AbortSignal,
): Promise<Executed> {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), timeLimit)
  const stop = AbortSignal.any([signal, limit.signal])
  try {
    const executing = execute(plan.arguments, principal, stop)
    // A tool that ignores its signal is left behind.
    executing.catch(() => {})
    const answer = await Promise.race([executing, rejectionOf(stop)])
    return { ...inspectedAnswer(plan.policy, answer), isCharged: answer.status === 'completed' }
  } catch (error) {
    if (signal.aborted) return { ...failed('The call was aborted.', 499, 'client_left'), isCharged: true }
    if (limit.signal.aborted) {
      const message = `The tool took longer than ${timeLimit / 1_000} seconds. It may have been executed.`
      return { ...failed(message, 500, 'tool_timed_out'), isCharged: true }
    }
    if (error instanceof ApiError) return failed(error.message, error.status, errorCodeOf(error))
    logEvent('error', 'tool_failed', { tool: target.id, error: errorText(error) })
    return failed('The tool failed.', 500, 'tool_failed')
  } finally {
    clearTimeout(timer)
  }
}

/** Rejects when the signal is aborted; never resolves. */
const rejectionOf = (signal: AbortSignal): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>()
  if (signal.aborted) reject(signal.reason)
  else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  return promise
}

/** The answer as the policies let it pass. What is blocked is withheld from the model and from the owner. */
function inspectedAnswer(policy: CallPolicy, { status, members }: ToolAnswer): Omit<Executed, 'isCharged'> {
  const inspection = policy.responseInspection()
  const source = encoder.encode(JSON.stringify(members))
  if (source.length > MOST_RESULT_BYTES) {
    const message = `The tool was executed, but its result is longer than ${MOST_RESULT_BYTES} bytes. Ask for less of it.`
    return failed(message, 500, 'tool_result_too_large')
  }
  try {
    const { pieces } = inspectJson(inspection, source, 'tool_result')
    const passed = JSON.parse(decoder.decode(joinBytes(pieces))) as ToolAnswer['members']
    const code = status === 'failed' ? 'tool_failed' : null
    return {
      answer: { status, members: passed },
      outcome: { status: 200, errorCode: code, response: inspection.counts },
    }
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind === 'internal') throw error
    const withheld = failed(`The result was withheld. ${error.message}`, error.status, errorCodeOf(error))
    return { ...withheld, outcome: { ...withheld.outcome, response: withheldBytes(source.length) } }
  }
}

const withheldBytes = (bytes: number): InspectionCounts => ({
  inspected: bytes,
  uninspected: 0,
  released: 0,
  withheld: bytes,
})

const failedAnswer = (error: string): ToolAnswer => ({ status: 'failed', members: { error } })

const failed = (message: string, status: number, errorCode: string): Executed => ({
  answer: failedAnswer(message),
  isCharged: false,
  outcome: { status, errorCode, response: null },
})

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
