import type { MiddlewareHandler } from 'hono'
import { readOrganization } from '../../../admin/organizations.ts'
import type { ManagementCaller, Principal } from '../../../identity/principal.ts'
import { type Actor, DEPLOYMENT_ORGANIZATION_ID } from '../../../ledger/audit-record.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { notFound } from '../../../lib/api-error.ts'
import { isOfInstallation, OPERATOR, type Permission } from '../../../wire/endpoints/permissions.ts'
import { isUuid } from '../../../wire/management-fields.ts'
import type { PagePosition, PageRequest } from '../../../wire/page-cursor.ts'
import { storedAddress } from '../../caller-address.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { unknownId } from '../../validated-request.ts'

// Steps that the routes of the management API share.

/** Set when a change is stored but could not be published: it reaches ledgers within a minute. */
const PROPAGATION_HEADER = 'x-headgate-propagation'

/**
 * The scope of the changes of a request: the organization of its path, else that of its session, else the deployment.
 * @param permission of the endpoint: one of the installation is for the deployment.
 */
export function changeScope(context: AppContext, permission: Permission | null = null): ChangeScope {
  const { configuration, clock, database, ledgerOf } = context.get('deps')
  const caller = context.get('managementCaller')
  const home = caller.kind === 'session' ? caller.principal.organizationId : null
  const isForDeployment = home === null || (permission !== null && isOfInstallation(permission))
  const ofCaller = isForDeployment ? DEPLOYMENT_ORGANIZATION_ID : home
  const organizationId = context.req.param('organizationId') ?? ofCaller
  return {
    clock,
    database,
    ledgerOf,
    organizationId,
    pepperRing: configuration.KEY_PEPPERS,
    vaultRing: configuration.VAULT_KEYS,
    egressAllow: configuration.EGRESS_ALLOW,
    requestId: context.get('requestId'),
    actor: actorOf(caller, storedAddress(context)),
    operatorOf: home === organizationId ? null : home,
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
 * Admits a request to the routes of an organization that exists: a session to its own, that of an operator to any. What an operator
 * may do there depends on the permission of the endpoint.
 * @throws ApiError `not_found` otherwise.
 */
export function organizationScope(): MiddlewareHandler<AppEnv> {
  return async function organizationScope(context, next) {
    const organizationId = context.req.param('organizationId') ?? ''
    if (!isUuid(organizationId)) throw unknownId('Organization', organizationId)
    const caller = context.get('managementCaller')
    if (caller.kind === 'session' && !entersOrganization(caller.principal, organizationId))
      throw notFound('Organization', organizationId)
    await readOrganization(changeScope(context))
    await next()
  }
}

const entersOrganization = (principal: Principal, organizationId: string): boolean =>
  principal.organizationId === organizationId || principal.entitlements.includes(OPERATOR)
