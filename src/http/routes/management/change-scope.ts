import type { MiddlewareHandler } from 'hono'
import { readOrganization } from '../../../admin/organizations.ts'
import type { ManagementCaller } from '../../../identity/principal.ts'
import { type Actor, DEPLOYMENT_ORGANIZATION_ID } from '../../../ledger/audit-record.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { notFound } from '../../../lib/api-error.ts'
import { isUuid } from '../../../wire/management-fields.ts'
import type { PagePosition, PageRequest } from '../../../wire/page-cursor.ts'
import { callerAddress } from '../../caller-address.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { unknownId } from '../../validated-request.ts'

// Steps that the routes of the management API share.

/** Set when a change is stored but could not be published: it reaches ledgers within a minute. */
const PROPAGATION_HEADER = 'x-headgate-propagation'

/** The scope of the changes of a request: the organization of its path, else that of its session, else the deployment. */
export function changeScope(context: AppContext): ChangeScope {
  const { configuration, clock, database, ledgerOf } = context.get('deps')
  const caller = context.get('managementCaller')
  const ofCaller = caller.kind === 'session' ? caller.principal.organizationId : DEPLOYMENT_ORGANIZATION_ID
  return {
    clock,
    database,
    ledgerOf,
    organizationId: context.req.param('organizationId') ?? ofCaller,
    pepperRing: configuration.KEY_PEPPERS,
    vaultRing: configuration.VAULT_KEYS,
    egressAllow: configuration.EGRESS_ALLOW,
    requestId: context.get('requestId'),
    actor: actorOf(caller, callerAddress(context)),
    propagationDelayed: () => context.header(PROPAGATION_HEADER, 'delayed'),
  }
}

/** A caller as audit records name it. */
function actorOf(caller: ManagementCaller, ip: string | null): Actor {
  const nobody = { userId: null, keyId: null, administrator: null, ip }
  if (caller.kind === 'admin_token') return { ...nobody, administrator: 'admin_token' }
  if (caller.kind === 'visitor') return nobody
  return { ...nobody, userId: caller.principal.userId, session: caller.sessionId }
}

/** The page that a list returns, from its validated query. */
export function pageRequest(parameters: { limit: number; cursor?: PagePosition | undefined }): PageRequest {
  return { limit: parameters.limit, after: parameters.cursor ?? null }
}

/**
 * Admits a request to the routes of an organization that exists: a session has one.
 * @throws ApiError `not_found` otherwise.
 */
export function organizationScope(): MiddlewareHandler<AppEnv> {
  return async function organizationScope(context, next) {
    const organizationId = context.req.param('organizationId') ?? ''
    if (!isUuid(organizationId)) throw unknownId('Organization', organizationId)
    const caller = context.get('managementCaller')
    if (caller.kind === 'session' && caller.principal.organizationId !== organizationId)
      throw notFound('Organization', organizationId)
    await readOrganization(changeScope(context))
    await next()
  }
}
