/**
 * A governed call is a value: `admit` opens it in the ledger, its holder makes the request, `settle` closes it. `refuse`
 * records a call that ends before its admission. Model calls, tool calls and agent turns use the same steps.
 */

import type { Principal } from '../identity/principal.ts'
import { type CallOpening, type CallOutcome, callOutcome } from '../ledger/audit-record.ts'
import {
  type Admission,
  type CallProgress,
  type CallToAdmit,
  type LedgerOf,
  type RateLimit,
  SETTLED_CALL,
} from '../ledger/contract.ts'
import type { LearnedEpochs } from '../ledger/epochs/known-epochs.ts'
import { shardOf } from '../ledger/shards/shards.ts'
import { ApiError } from '../lib/api-error.ts'
import type { Clock } from '../lib/clock.ts'
import { counted } from '../lib/counted.ts'
import { newId } from '../lib/ids.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { type CallTarget, modelIdOf, toolOf } from './target.ts'

export interface GovernanceDeps {
  clock: Clock
  ledgerOf: LedgerOf
}

/** The identity of one API call before any decision. It never changes. */
export type CallIdentity = Omit<CallOpening, 'organizationId' | 'modelId' | 'tool'>

/** The caller, and the revocation epochs at which its rights and the catalogue were read. */
export interface CallerRights {
  principal: Principal
  /** Null: the call does not use the catalogue. */
  catalogueEpoch: number | null
  /** Epochs that were read from Postgres because the ledger did not have them; null when none was read. */
  learned: LearnedEpochs | null
}

export interface CallRequest {
  identity: CallIdentity
  rights: CallerRights
  target: CallTarget | null
  /** Micro-credits; 0 for calls that cost nothing. */
  reserve: number
  leaseMilliseconds: number
  /** Settled when the call is never closed; null: all of `reserve`. */
  estimate: CallProgress | null
  /** Whether the call counts against the limits: false for a further turn of a response. */
  counted: boolean
  /** How the caller can lower what the call reserves, as an imperative clause. */
  advice: string
  /** Micro-credits that are left of the limit of its task, such as a run; absent without one. The reservation must not exceed it. */
  creditsLeft?: number | undefined
}

/** A call that is open in the ledger. Plain data, so that it can be stored and settled after a restart. */
export interface GovernedCall {
  opening: CallOpening
  reserve: number
}

/** `rateLimit`: the caller's limits after the call; absent where the ledger did not count it. */
export type Refused = { kind: 'refused'; error: ApiError; rateLimit?: RateLimit | undefined }
export type Opened = { kind: 'admitted'; call: GovernedCall; rateLimit?: RateLimit | undefined }
export type Stale = Extract<Admission, { kind: 'stale' }>

/** Credits return when a running call settles, or when some are granted: not within a client's own retries. */
const NO_CREDITS_RETRY_SECONDS = 60

/**
 * Admits a call: limits, epochs, credits and the durable opening record in one round trip. A refusal is recorded, and so is
 * the refusal of a call that could exceed the limit of its task, which needs no ledger.
 * @throws any error of the ledger when the opening cannot be stored: nothing may be sent then.
 */
export async function admit(deps: GovernanceDeps, request: CallRequest): Promise<Opened | Refused | Stale> {
  const { rights, reserve, leaseMilliseconds, estimate, creditsLeft = reserve } = request
  if (reserve > creditsLeft) return refuse(deps, request, taskLimitReached(request, creditsLeft), request)
  const { opening, admission } = await openCall(deps, {
    opening: openingOf(request.identity, rights.principal, request.target),
    reserve,
    leaseMilliseconds,
    estimate,
    ...countedOf(rights, request.counted),
  })
  if (admission.kind === 'admitted') return { ...admission, call: { opening, reserve } }
  if (admission.kind === 'stale') return admission
  const refused: Refused =
    admission.kind === 'limited'
      ? limitReached(deps, rights.principal, admission)
      : { kind: 'refused', error: notEnoughCredits(admission, request.advice) }
  await recordRefusal(deps, opening, refusalOutcome(opening, deps.clock(), refused.error))
  return refused
}

/**
 * Opens a call in the ledger. Its holder may have opened it, died, and returned after the lease, when the ledger has settled it:
 * then a new call with a new id is opened.
 */
async function openCall(
  { ledgerOf }: GovernanceDeps,
  call: CallToAdmit,
): Promise<{ opening: CallOpening; admission: Admission }> {
  const { opening } = call
  const ledger = ledgerOf(opening.organizationId, opening.shard)
  try {
    return { opening, admission: await ledger.admit(call) }
  } catch (error) {
    if (!(error instanceof Error) || error.message !== SETTLED_CALL) throw error
    const another = { ...opening, callId: newId('call') }
    return { opening: another, admission: await ledger.admit({ ...call, opening: another }) }
  }
}

/**
 * Records a call that ends before its admission. It counts against the limits like any other, so that refused calls do
 * not bypass them: a limit that is reached replaces the error.
 */
export async function refuse(
  deps: GovernanceDeps,
  request: RefusedRequest,
  error: ApiError,
  about: RefusalContext,
): Promise<Refused | Stale> {
  const recorded = await refuseAs(
    deps,
    request,
    { status: error.status, errorCode: errorCodeOf(error) },
    about,
  )
  return recorded.kind === 'recorded' ? { ...recorded, kind: 'refused', error } : recorded
}

type RefusedRequest = Pick<CallRequest, 'identity' | 'rights' | 'counted'>
type RefusalContext = { target: CallTarget | null; dlp?: CallOutcome['dlp'] }

/** A call that was refused for the reason that its record has. */
type Recorded = { kind: 'recorded'; rateLimit?: RateLimit | undefined }

/** Records a refused call, as `refuse`. @param refusal status and error code of its record. */
export async function refuseAs(
  deps: GovernanceDeps,
  request: RefusedRequest,
  refusal: Pick<CallOutcome, 'status' | 'errorCode'>,
  { target, dlp = null }: RefusalContext,
): Promise<Recorded | Refused | Stale> {
  const opening = openingOf(request.identity, request.rights.principal, target)
  const outcome = { ...callOutcome(opening, deps.clock(), refusal), dlp }
  const admission = await recordRefusal(deps, opening, outcome, countedOf(request.rights, request.counted))
  if (admission?.kind === 'stale') return admission
  if (admission?.kind === 'admitted') return { kind: 'recorded', rateLimit: admission.rateLimit }
  if (admission?.kind !== 'limited') return { kind: 'recorded' }
  const limited = limitReached(deps, request.rights.principal, admission)
  await recordRefusal(deps, opening, refusalOutcome(opening, deps.clock(), limited.error))
  return limited
}

/** Never rejects: the caller gets the refusal also when it cannot be recorded. */
async function recordRefusal(
  deps: GovernanceDeps,
  opening: CallOpening,
  outcome: CallOutcome,
  countedAs?: Pick<CallToAdmit, 'epochs' | 'learned' | 'limits'>,
): Promise<Admission | null> {
  try {
    return await deps.ledgerOf(opening.organizationId, opening.shard).record(opening, outcome, countedAs)
  } catch (error) {
    logEvent('error', 'audit_failed', { request_id: opening.requestId, error: errorText(error) })
    return null
  }
}

/**
 * Checks the limits of a caller before a large body is read for it. Counts nothing.
 * @returns null when the limits leave room. @throws what the ledger throws.
 */
export async function checkLimits(
  deps: GovernanceDeps,
  rights: CallerRights,
): Promise<Refused | Stale | null> {
  const { organizationId, userId, ledgerShards } = rights.principal
  const ledger = deps.ledgerOf(organizationId, shardOf(userId, ledgerShards))
  const admission = await ledger.check(countedOf(rights, true))
  if (admission.kind === 'limited') return limitReached(deps, rights.principal, admission)
  return admission.kind === 'stale' ? admission : null
}

/**
 * Closes a call with its outcome. Never rejects: if the close cannot be delivered, the ledger settles the call when its
 * lease runs out. A second close changes nothing.
 * @returns whether the outcome is stored; if not, it may be tried again.
 */
export async function settle(
  deps: GovernanceDeps,
  { opening }: GovernedCall,
  outcome: CallOutcome,
): Promise<boolean> {
  try {
    await deps.ledgerOf(opening.organizationId, opening.shard).close(opening.callId, outcome)
    return true
  } catch (error) {
    logEvent('error', 'ledger_close_failed', { call_id: opening.callId, error: errorText(error) })
    return false
  }
}

/**
 * Renews the lease of a running call, with what it has used so far.
 * @returns whether the call is still open; null when the ledger did not answer.
 */
export async function extend(
  deps: GovernanceDeps,
  { opening }: GovernedCall,
  leaseMilliseconds: number,
  progress: CallProgress | null,
): Promise<boolean | null> {
  try {
    const ledger = deps.ledgerOf(opening.organizationId, opening.shard)
    return (await ledger.extend(opening.callId, leaseMilliseconds, progress)).open
  } catch (error) {
    logEvent('warn', 'ledger_extend_failed', { error: errorText(error) })
    return null
  }
}

/** The outcome of a call that ended with an error before anything was used. */
export const refusalOutcome = (opening: CallOpening, now: number, error: ApiError): CallOutcome =>
  callOutcome(opening, now, { status: error.status, errorCode: errorCodeOf(error) })

/** The error code of an audit record. */
export const errorCodeOf = ({ code, kind }: ApiError): string =>
  code ?? (kind === 'internal' ? 'internal_error' : kind)

export function openingOf(
  identity: CallIdentity,
  owner: Pick<Principal, 'organizationId' | 'userId'> & { ledgerShards?: number },
  target: CallTarget | null,
): CallOpening {
  const { organizationId, userId, ledgerShards } = owner
  const tool = toolOf(target)
  const named = { modelId: modelIdOf(target), ...(tool !== null && { tool }) }
  return { ...identity, organizationId, shard: shardOf(userId, ledgerShards), ...named }
}

function countedOf(
  { principal, catalogueEpoch, learned }: CallerRights,
  isCounted: boolean,
): Pick<CallToAdmit, 'epochs' | 'learned' | 'limits'> {
  const {
    userId,
    organizationLimitPerMinute: organizationPerMinute,
    userLimitPerMinute: userPerMinute,
  } = principal
  const { ledgerShards: shards } = principal
  return {
    epochs: { organization: principal.epoch, catalogue: catalogueEpoch },
    learned,
    limits: isCounted ? { userId, organizationPerMinute, userPerMinute, shards } : null,
  }
}

function limitReached(
  { clock }: GovernanceDeps,
  { organizationLimitPerMinute, userLimitPerMinute }: Principal,
  { scope, retryAfterSeconds }: Extract<Admission, { kind: 'limited' }>,
): Refused {
  const seconds = Math.max(1, Math.ceil(retryAfterSeconds))
  const limit = scope === 'user' ? userLimitPerMinute : organizationLimitPerMinute
  const message =
    `Your ${scope}'s rate limit of ${counted(limit, 'call')} a minute is reached. ` +
    `Try again in ${counted(seconds, 'second')}.`
  return {
    kind: 'refused',
    error: new ApiError('rate_limited', message, { retryAfterSeconds: seconds, limit: scope }),
    rateLimit: { limit, remaining: 0, resetsAt: clock() + seconds * 1_000 },
  }
}

/** The code of a call that could exceed the credit limit of its task. */
export const MAX_CREDITS = 'max_credits'

function taskLimitReached({ reserve, advice }: CallRequest, creditsLeft: number): ApiError {
  const message =
    `The credit limit of the run is reached: the next call can cost up to ${counted(reserve, 'micro-credit')}, and ` +
    `${counted(Math.max(0, creditsLeft), 'micro-credit')} of the limit are left. ${advice}, or raise the limit.`
  return new ApiError('rate_limited', message, { code: MAX_CREDITS, shouldRetry: false, limit: 'credits' })
}

function notEnoughCredits(
  { required, available }: Extract<Admission, { kind: 'no_credits' }>,
  advice: string,
): ApiError {
  const message =
    `Your organization does not have enough credits: this call can cost up to ${counted(required, 'micro-credit')}, and ` +
    `${counted(Math.max(0, available), 'micro-credit')} can be spent. ` +
    // A smaller call needs credits as well.
    (available > 0 ? `${advice}, or add credits.` : 'Add credits.') +
    ' This is not a rate limit: repeating the call does not help.'
  return new ApiError('rate_limited', message, {
    retryAfterSeconds: NO_CREDITS_RETRY_SECONDS,
    shouldRetry: false,
    limit: 'credits',
  })
}
