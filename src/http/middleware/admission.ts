import type { MiddlewareHandler } from 'hono'
import {
  admit,
  type CallerRights,
  type CallRequest,
  errorCodeOf,
  type GovernedCall,
  type Opened,
  type Refused,
  type Stale,
  settle,
} from '../../calls/governed-call.ts'
import { withCatalogue, withCurrentRights } from '../../calls/renew-rights.ts'
import { withRenewedLease } from '../../calls/renewed-lease.ts'
import type { Deps } from '../../deps.ts'
import { loadModelCatalogue } from '../../gateway/catalogue/model-catalogue.ts'
import { callOutcome } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { setRateLimitHeaders } from '../rate-limit-headers.ts'

/** Time after which the ledger records a call that only reads as unsettled, if its process has died before it was closed. */
const READ_LEASE_MS = 30_000

/**
 * Admits a call that costs nothing, such as a list, before its route runs, and settles it with its answer. Limits, epochs
 * and record are those of any call.
 * @param options `usesCatalogue`: the route reads the models of the deployment.
 * @throws ApiError rate_limited, or unauthorized for a key that is no longer valid.
 */
export function admission({ usesCatalogue = false } = {}): MiddlewareHandler<AppEnv> {
  return async function admissionMiddleware(context, next) {
    const call = await admitRead(context, usesCatalogue)
    await whileOpen(context, call, next)
    settleRead(context, call, context.res.status)
  }
}

/** Does the work of a call that costs nothing, however long it takes. @throws what the work throws. */
export const whileOpen = <Result>(
  context: AppContext,
  call: GovernedCall,
  work: () => Promise<Result>,
): Promise<Result> => withRenewedLease(context.get('deps'), call, READ_LEASE_MS, work)

/** Settles a call that only read, in the background. @param status of its answer. */
export function settleRead(context: AppContext, call: GovernedCall, status: number): void {
  const [deps, errorCode] = [context.get('deps'), context.get('errorCode')]
  const outcome = callOutcome(call.opening, deps.clock(), { status, errorCode })
  deps.waitUntil(settle(deps, call, outcome))
}

/** Closes a call whose handler has thrown. */
export function settleFailedRead(context: AppContext, call: GovernedCall, error: unknown): void {
  const known = error instanceof ApiError ? error : null
  context.set('errorCode', known ? errorCodeOf(known) : 'internal_error')
  settleRead(context, call, known?.status ?? 500)
}

/** Admits a call that costs nothing before some work, and settles it with its outcome. @throws as `admission` and the work. */
export async function withAdmission<Result>(
  context: AppContext,
  work: () => Promise<Result>,
): Promise<Result> {
  const call = await admitRead(context, false)
  try {
    const result = await whileOpen(context, call, work)
    settleRead(context, call, 200)
    return result
  } catch (error) {
    settleFailedRead(context, call, error)
    throw error
  }
}

/** Admits a call that costs nothing, for its holder to settle. @throws as `admission`. */
export async function admitRead(context: AppContext, usesCatalogue: boolean): Promise<GovernedCall> {
  const admitted = await admittedOrRefused(context, usesCatalogue)
  context.set('isRecorded', true)
  context.set('rateLimit', admitted.rateLimit ?? null)
  setRateLimitHeaders(context)
  if (admitted.kind === 'refused') throw admitted.error
  return admitted.call
}

async function admittedOrRefused(context: AppContext, usesCatalogue: boolean): Promise<Opened | Refused> {
  const [deps, caller, known] = [context.get('deps'), context.get('caller'), context.get('rights')]
  const catalogueEpoch = usesCatalogue ? (await loadModelCatalogue(deps)).epoch : null
  return withCurrentRights(deps, { ...known, catalogueEpoch }, async (renewed, outdated: Stale | null) => {
    const rights = outdated && usesCatalogue ? await withLoadedCatalogue(deps, renewed) : renewed
    const admitted = await admit(deps, { identity: caller.identity, rights, ...FREE } satisfies CallRequest)
    context.set('rights', rights)
    return admitted
  })
}

async function withLoadedCatalogue(deps: Deps, rights: CallerRights): Promise<CallerRights> {
  const { epoch } = await loadModelCatalogue(deps, rights.catalogueEpoch ?? undefined)
  return withCatalogue(rights, epoch)
}

const FREE = {
  target: null,
  reserve: 0,
  leaseMilliseconds: READ_LEASE_MS,
  estimate: null,
  counted: true,
  advice: '',
} as const
