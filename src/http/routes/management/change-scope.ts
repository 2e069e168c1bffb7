import type { MiddlewareHandler } from 'hono'
import { readOrganization } from '../../../admin/organizations.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../../ledger/audit-record.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { ApiError, notFound } from '../../../lib/api-error.ts'
import { isUuid } from '../../../wire/management-fields.ts'
import type { PagePosition, PageRequest } from '../../../wire/page-cursor.ts'
import { callerAddress } from '../../caller-address.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { unknownId } from '../../validated-request.ts'

// Steps that the routes of the management API share.

/** Set when a change is stored but could not be published: it reaches ledgers within a minute. */
const PROPAGATION_HEADER = 'x-headgate-propagation'

/** The scope of the changes of a request: the organization of its path, or the deployment. */
export function changeScope(context: AppContext): ChangeScope {
  const { configuration, clock, database, ledgerOf } = context.get('deps')
  return {
    clock,
    database,
    ledgerOf,
    organizationId: context.req.param('organizationId') ?? DEPLOYMENT_ORGANIZATION_ID,
    pepperRing: configuration.KEY_PEPPERS,
    vaultRing: configuration.VAULT_KEYS,
    egressAllow: configuration.EGRESS_ALLOW,
    requestId: context.get('requestId'),
    actor: {
      userId: null,
      keyId: null,
      administrator: context.get('administrator').actor,
      ip: callerAddress(context),
    },
    propagationDelayed: () => context.header(PROPAGATION_HEADER, 'delayed'),
  }
}

/** The page that a list returns, from its validated query. */
export function pageRequest(parameters: { limit: number; cursor?: PagePosition | undefined }): PageRequest {
  return { limit: parameters.limit, after: parameters.cursor ?? null }
}

/**
 * Admits a request to the routes of an organization that exists and that this administrator administers.
 * @throws ApiError `not_found` otherwise.
 */
export function organizationScope(): MiddlewareHandler<AppEnv> {
  return async function organizationScope(context, next) {
    const organizationId = context.req.param('organizationId') ?? ''
    if (!isUuid(organizationId)) throw unknownId('Organization', organizationId)
    const administered = context.get('administrator').organizationId
    if (administered !== null && administered !== organizationId)
      throw notFound('Organization', organizationId)
    await readOrganization(changeScope(context))
    await next()
  }
}

/** For routes of the deployment: refuses administrators of a single organization. @throws ApiError `not_found`. */
export function deploymentScope(): MiddlewareHandler<AppEnv> {
  return async function deploymentScope(context, next) {
    if (context.get('administrator').organizationId !== null) throw new ApiError('not_found', 'Not found.')
    await next()
  }
}
