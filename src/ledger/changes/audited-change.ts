import { ApiError } from '../../lib/api-error.ts'
import type { Clock } from '../../lib/clock.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { databaseCause } from '../../lib/database-error.ts'
import { newId } from '../../lib/ids.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { Actor, AuditedChange } from '../audit-record.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../audit-record.ts'
import type { LedgerOf } from '../contract.ts'
import { HOME_SHARD } from '../shards/shards.ts'
import { publishCatalogue, publishRights } from './publish-epoch.ts'
import type { EpochChange, OrganizationScope } from './scoped-statements.store.ts'

/**
 * The order of every change of the management API: audit first, then one statement or batch, then the epoch (`changeRights`,
 * `changeCatalogue`).
 * No change is made without an audit record: the record of the intended change is stored before the statement runs. A change that
 * then fails is followed by a `change.failed` record naming the first one. So the trail may show a change that did not happen (a
 * process that died in between leaves no second record), never the reverse.
 */

/**
 * Dependencies of a change: to make it, record it and publish it. `organizationId` is the organization that it belongs
 * to; the deployment's own for a change of the deployment.
 */
export interface ChangeScope extends OrganizationScope {
  ledgerOf: LedgerOf
  clock: Clock
  pepperRing: KeyRing
  vaultRing: KeyRing
  egressAllow: readonly string[]
  requestId: string
  actor: Actor
  /** The organization of the operator that acts in this one, or on the deployment; null or left out for any other caller. */
  operatorOf?: string | null
  /** Called when a change is stored but could not be published: it takes effect as caches of ledgers and isolates expire. */
  propagationDelayed: () => void
}

/** A change before it is made. Contains no secret, because it is stored permanently. */
export interface Intent {
  /** The organization whose audit trail records the change; that of the scope when left out. */
  organizationId?: string
  /** Dotted, such as `api_key.created`. */
  action: string
  resource: string
  detail: Record<string, unknown>
}

/** An API key, a session or a setup link; its id, which is public, stays. */
const TOKEN = /(hg[sl]?)_([0-9A-Za-z]{12})_[0-9A-Za-z]{20,}/g

/** Text for a permanent record, without keys: people paste whole keys into filters, names and reasons. */
export const withoutKeys = (text: string) => text.replace(TOKEN, '$1_$2_[redacted]')

/** An audit record of an intent, by the caller of this request, now. */
export function describeChange(scope: ChangeScope, intent: Intent): AuditedChange {
  const { operatorOf } = scope
  const detail = { ...intent.detail, ...(operatorOf && { operator: { organization_id: operatorOf } }) }
  return {
    id: newId('change'),
    requestId: scope.requestId,
    at: scope.clock(),
    actor: scope.actor,
    organizationId: scope.organizationId,
    ...intent,
    resource: withoutKeys(intent.resource),
    // Members without a value are left out here, so that the record's hash never depends on how they travel.
    detail: JSON.parse(
      JSON.stringify(detail, (_name, value) => (typeof value === 'string' ? withoutKeys(value) : value)),
    ),
  }
}

/**
 * Records the intent, then makes the change.
 * @throws ApiError `internal` when the record cannot be stored (nothing was changed) or the change failed;
 * `unprocessable` when it conflicts with what exists; what `change` throws as ApiError.
 */
export async function audited<Result>(
  scope: ChangeScope,
  intent: Intent,
  change: () => Promise<Result>,
): Promise<Result> {
  const record = describeChange(scope, intent)
  await recordOrRefuse(scope, record, 'nothing was changed')
  try {
    return await change()
  } catch (error) {
    const failure = explainFailure(error)
    await recordFailure(scope, record, failure)
    throw failure.error
  }
}

/**
 * Makes an audited change of the organization's rights, and publishes the epoch that its statement raised. Once this
 * returns, the organization's ledger refuses calls under the old rights.
 * @throws ApiError as `audited`.
 */
export async function changeRights<Result>(
  scope: ChangeScope,
  intent: Intent,
  change: () => Promise<EpochChange<Result>>,
): Promise<Result> {
  const { result, epoch } = await audited(scope, intent, change)
  await publishRights(scope, epoch)
  return result
}

/**
 * Makes an audited change of the deployment's providers or models, and publishes the catalogue's epoch that its statement
 * raised.
 * @throws ApiError as `audited`.
 */
export async function changeCatalogue<Result>(
  scope: ChangeScope,
  intent: Intent,
  change: () => Promise<EpochChange<Result>>,
): Promise<Result> {
  const deployment = { organizationId: DEPLOYMENT_ORGANIZATION_ID, ...intent }
  const { result, epoch } = await audited(scope, deployment, change)
  await publishCatalogue(scope, epoch)
  return result
}

/** Records a view of audit records. @throws ApiError `internal` when that cannot be stored. */
export async function recordView(scope: ChangeScope, intent: Intent): Promise<void> {
  await recordOrRefuse(scope, describeChange(scope, intent), 'nothing is shown')
}

/** SQLSTATE classes of a connection or server that was lost, perhaps after the commit. */
const LEAVES_DOUBT = /^(08|57|40003)/

/** The error for a name that is taken, and for a state that does not allow the change. */
export const conflict = (message: string) => new ApiError('unprocessable', message, { code: 'conflict' })

async function recordOrRefuse(scope: ChangeScope, record: AuditedChange, otherwise: string) {
  try {
    await scope.ledgerOf(record.organizationId, HOME_SHARD).recordChange(record)
  } catch (error) {
    const message = `The audit record could not be stored, so ${otherwise}.`
    throw new ApiError('internal', message, { cause: error })
  }
}

interface Failure {
  error: ApiError
  /** `refused`: the change was not made. `unknown`: the database did not confirm either way. */
  outcome: 'refused' | 'unknown'
}

function explainFailure(error: unknown): Failure {
  if (error instanceof ApiError) return { error, outcome: 'refused' }
  const cause = databaseCause(error)
  if (cause?.code === '23505')
    return { error: conflict('One with this name or id exists already.'), outcome: 'refused' }
  if (cause?.code === '23503') {
    return { error: conflict('Something this refers to was removed meanwhile.'), outcome: 'refused' }
  }
  return cause === null || LEAVES_DOUBT.test(cause.code)
    ? {
        error: new ApiError('internal', 'The change may stand; look before you repeat it.', { cause: error }),
        outcome: 'unknown',
      }
    : {
        error: new ApiError('internal', 'Something went wrong; nothing was changed.', { cause: error }),
        outcome: 'refused',
      }
}

async function recordFailure(scope: ChangeScope, record: AuditedChange, failure: Failure) {
  const followUp = describeChange(scope, {
    organizationId: record.organizationId,
    action: 'change.failed',
    resource: record.resource,
    detail: { change_id: record.id, action: record.action, outcome: failure.outcome },
  })
  await scope
    .ledgerOf(record.organizationId, HOME_SHARD)
    .recordChange(followUp)
    .catch((error: unknown) => logEvent('error', 'audit.record_failed', { error: errorText(error) }))
}
