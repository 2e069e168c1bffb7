/**
 * A governed call is a value. `admit` asks the ledger for it, the caller sends what it stands for, `settle` closes it;
 * `refuse` records a call that ends before that. Model calls, tool calls and agent turns use the same steps.
 */
import { ApiError } from '../lib/api-error.ts'
import type { Clock } from '../lib/clock.ts'
import { counted } from '../lib/counted.ts'
import { errorText, logEvent } from '../lib/log.ts'
import type { CallOpening, CallOutcome } from './audit-record.ts'
import type { Admission, CallProgress, CallToAdmit, LedgerOf } from './ledger/contract.ts'
import { shardOf } from './ledger/shards/shards.ts'
import type { Principal } from './principal.ts'
import { type CallTarget, modelIdOf } from './target.ts'

export interface GovernanceDeps {
  clock: Clock
  ledgerOf: LedgerOf
}

/** What one call of the API is, before anything is decided. Never changed. */
export type CallIdentity = Omit<CallOpening, 'organizationId' | 'modelId'>

/** Whose call it is, and at which epochs its rights and the catalogue were read. */
export interface CallerRights {
  principal: Principal
  /** Null: the call does not use the catalogue. */
  catalogueEpoch: number | null
  /** Epochs that Postgres told after the ledger did not know them; null for those that it was not asked for. */
  learned: CallToAdmit['learned']
}

export interface CallRequest {
  identity: CallIdentity
  rights: CallerRights
  target: CallTarget | null
  /** Micro-credits; 0 for calls that cost nothing. */
  reserve: number
  leaseMilliseconds: number
  /** What is settled when nobody closes the call; null: all of `reserve`. */
  estimate: CallProgress | null
  /** Whether it counts against the limits: false for a further turn of a response. */
  counted: boolean
  /** How the caller can lower what the call reserves, as an imperative clause. */
  advice: string
}

/** A call that the ledger holds open. Plain data: another life of its caller can settle it. */
export interface GovernedCall {
  opening: CallOpening
  reserve: number
}

export type Refused = { kind: 'refused'; error: ApiError }
export type Stale = Extract<Admission, { kind: 'stale' }>

/** Credits come back when a running call settles or some are added: not within a client's own retries. */
const NO_CREDITS_RETRY_SECONDS = 60

/**
 * Admits a call: limits, epochs, credits and the durable opening record in one round trip. A refusal is recorded.
 * @throws whatever the ledger throws when the opening cannot be stored: nothing may be sent then.
 */
export async function admit(
  deps: GovernanceDeps,
  request: CallRequest,
): Promise<{ kind: 'admitted'; call: GovernedCall } | Refused | Stale> {
  const { rights, reserve, leaseMilliseconds, estimate } = request
  const opening = openingOf(request.identity, rights.principal, modelIdOf(request.target))
  const admission = await deps
    .ledgerOf(opening.organizationId, opening.shard)
    .admit({ opening, reserve, leaseMilliseconds, estimate, ...countedOf(rights, request.counted) })
  if (admission.kind === 'admitted') return { kind: 'admitted', call: { opening, reserve } }
  if (admission.kind === 'stale') return admission
  const error =
    admission.kind === 'limited' ? limitReached(admission) : notEnoughCredits(admission, request.advice)
  await recordRefusal(deps, opening, refusalOutcome(opening, deps.clock(), error))
  return { kind: 'refused', error }
}

/** What the audit record of a refused call says besides its error. */
export interface RefusalDetails {
  target: CallTarget | null
  dlp?: CallOutcome['dlp']
}

/**
 * Records a call that ends before it was admitted. It counts against the limits like any other, so that refused calls are
 * no way around them: the error may become the one of a limit.
 */
export async function refuse(
  deps: GovernanceDeps,
  request: Pick<CallRequest, 'identity' | 'rights' | 'counted'>,
  error: ApiError,
  { target, dlp = null }: RefusalDetails,
): Promise<Refused | Stale> {
  const opening = openingOf(request.identity, request.rights.principal, modelIdOf(target))
  const outcome = { ...refusalOutcome(opening, deps.clock(), error), dlp }
  const admission = await recordRefusal(deps, opening, outcome, countedOf(request.rights, request.counted))
  if (admission?.kind === 'stale') return admission
  if (admission?.kind !== 'limited') return { kind: 'refused', error }
  const limit = limitReached(admission)
  await recordRefusal(deps, opening, refusalOutcome(opening, deps.clock(), limit))
  return { kind: 'refused', error: limit }
}

/** A refusal stays the refusal it is, also when it cannot be recorded. */
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
 * Whether a caller has room in its limits, before a large body is read for it. Counts nothing.
 * @returns null when it has. @throws whatever the ledger throws.
 */
export async function checkLimits(
  deps: GovernanceDeps,
  rights: CallerRights,
): Promise<ApiError | Stale | null> {
  const { organizationId, userId, ledgerShards } = rights.principal
  const ledger = deps.ledgerOf(organizationId, shardOf(userId, ledgerShards))
  const admission = await ledger.check(countedOf(rights, true))
  if (admission.kind === 'limited') return limitReached(admission)
  return admission.kind === 'stale' ? admission : null
}

/**
 * Closes a call with what it came to. Never rejects: a close that cannot be delivered is made up for by the ledger, when
 * the lease of the call runs out. A second close changes nothing.
 * @returns whether the ledger has it; where not, it may be tried again.
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
 * @returns whether the ledger holds it open; null when the ledger could not be asked.
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

/**
 * The outcome of a call, where nothing else is known: it used nothing and reached nobody.
 * @param now milliseconds since the epoch. @param known what is known of it.
 */
export function outcomeOf(
  { at }: Pick<CallOpening, 'at'>,
  now: number,
  known: Partial<CallOutcome> & { status: number },
): CallOutcome {
  return {
    errorCode: null,
    provider: null,
    attempts: [],
    usage: null,
    provenance: null,
    cost: 0,
    durationMilliseconds: now - at,
    request: null,
    response: null,
    dlp: null,
    connectionId: null,
    flags: [],
    ...known,
  }
}

/** The outcome of a call that ended with an error before anything was used. */
export const refusalOutcome = (opening: CallOpening, now: number, error: ApiError): CallOutcome =>
  outcomeOf(opening, now, { status: error.status, errorCode: errorCodeOf(error) })

/** How an audit record names an error. */
export const errorCodeOf = ({ code, kind }: ApiError): string =>
  code ?? (kind === 'internal' ? 'internal_error' : kind)

export function openingOf(
  identity: CallIdentity,
  owner: Pick<Principal, 'organizationId' | 'userId'> & { ledgerShards?: number },
  modelId: string | null,
): CallOpening {
  const { organizationId, userId, ledgerShards } = owner
  return { ...identity, organizationId, shard: shardOf(userId, ledgerShards), modelId }
}

function countedOf(
  { principal, catalogueEpoch, learned }: CallerRights,
  isCounted: boolean,
): Pick<CallToAdmit, 'epochs' | 'learned' | 'limits'> {
  const { userId, organizationLimitPerMinute, userLimitPerMinute, ledgerShards: shards } = principal
  return {
    epochs: { organization: principal.epoch, catalogue: catalogueEpoch },
    learned,
    limits: isCounted
      ? {
          userId,
          organizationPerMinute: organizationLimitPerMinute,
          userPerMinute: userLimitPerMinute,
          shards,
        }
      : null,
  }
}

function limitReached({ scope, retryAfterSeconds }: Extract<Admission, { kind: 'limited' }>): ApiError {
  const seconds = Math.max(1, Math.ceil(retryAfterSeconds))
  const whose = scope === 'user' ? 'Your' : "Your organization's"
  const message = `${whose} rate limit is reached. Try again in ${counted(seconds, 'second')}.`
  return new ApiError('rate_limited', message, { retryAfterSeconds: seconds })
}

function notEnoughCredits(
  { required, available }: Extract<Admission, { kind: 'no_credits' }>,
  advice: string,
): ApiError {
  const message =
    `Not enough credits: this call can cost up to ${counted(required, 'micro-credit')}, and ` +
    `${counted(Math.max(0, available), 'micro-credit')} can be spent. ${advice} or add credits.`
  return new ApiError('rate_limited', message, {
    retryAfterSeconds: NO_CREDITS_RETRY_SECONDS,
    shouldRetry: false,
  })
}
