import type { MiddlewareHandler } from 'hono'
import { loadCatalog } from '../../gateway/catalog/catalog.ts'
import { outcomeOf } from '../../governance/audit-record.ts'
import {
  admit,
  type CallRequest,
  errorCodeOf,
  type GovernedCall,
  type Opened,
  type Refused,
  settle,
} from '../../governance/governed-call.ts'
import { MOST_ADMISSIONS, renewRights, withCatalogue } from '../../governance/renew-rights.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { setRateLimitHeaders } from '../rate-limit-headers.ts'

/** How long the answer of a call that only reads may take. */
const READ_LEASE_MS = 120_000

/**
 * Admits a call that costs nothing, such as a list, before its route runs, and settles it with its answer. Limits, epochs
 * and record are those of any call.
 * @param options `usesCatalogue`: the route reads the models of the deployment.
 * @throws ApiError rate_limited, or unauthorized for a key that is no longer valid.
 */
export function admission({ usesCatalogue = false } = {}): MiddlewareHandler<AppEnv> {
  return async function admissionMiddleware(context, next) {
    const call = await admitRead(context, usesCatalogue)
    await next()
    settleRead(context, call, context.res.status)
  }
}

/** Settles a call that only read, in the background. @param status of its answer. */
export function settleRead(context: AppContext, call: GovernedCall, status: number): void {
  const [deps, errorCode] = [context.get('deps'), context.get('errorCode')]
  const outcome = outcomeOf(call.opening, deps.clock(), { status, errorCode })
  deps.waitUntil(settle(deps, call, outcome))
}

/** Admits a call that costs nothing before some work, and settles it with its outcome. @throws as `admission` and the work. */
export async function withAdmission<Result>(
  context: AppContext,
  work: () => Promise<Result>,
): Promise<Result> {
  const call = await admitRead(context, false)
  try {
    const result = await work()
    settleRead(context, call, 200)
    return result
  } catch (error) {
    const known = error instanceof ApiError ? error : null
    context.set('errorCode', known ? errorCodeOf(known) : 'internal_error')
    settleRead(context, call, known?.status ?? 500)
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
  const catalogueEpoch = usesCatalogue ? (await loadCatalog(deps)).epoch : null
  let rights = { ...known, catalogueEpoch }
  for (let admissions = 0; admissions < MOST_ADMISSIONS; admissions++) {
    const request = { identity: caller.identity, rights, ...FREE } satisfies CallRequest
    const admitted = await admit(deps, request)
    context.set('rights', rights)
    if (admitted.kind !== 'stale') return admitted
    rights = await renewRights(deps, rights, admitted)
    if (!usesCatalogue) continue
    const { epoch } = await loadCatalog(deps, rights.catalogueEpoch ?? undefined)
    rights = withCatalogue(rights, epoch)
  }
  throw new ApiError('internal', 'The rights of the caller keep changing.')
}

const FREE = {
  target: null,
  reserve: 0,
  leaseMilliseconds: READ_LEASE_MS,
  estimate: null,
  counted: true,
  advice: '',
} as const
