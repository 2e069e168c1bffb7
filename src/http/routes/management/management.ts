import { Hono } from 'hono'
import { MAXIMUM_BODY_BYTES } from '../../../wire/body-limit.ts'
import type { AppEnv } from '../../context.ts'
import { administer } from '../../middleware/administer.ts'
import { limitDeclaredLength } from '../../middleware/declared-length.ts'
import { limitBody } from '../../middleware/limit-body.ts'
import { visit } from '../../middleware/visit.ts'
import { staticFile } from '../../static-file.ts'
import { agentHandlers } from './agents.ts'
import { attentionHandlers } from './attention.ts'
import { auditHandlers } from './audit.ts'
import { auditExportHandlers } from './audit-export.ts'
import { auditVerificationHandlers } from './audit-verification.ts'
import { callHandlers } from './calls.ts'
import { organizationScope } from './change-scope.ts'
import { connectionHandlers } from './connections.ts'
import { creditHandlers } from './credits.ts'
import { erasureHandlers } from './erasures.ts'
import { findHandlers } from './find.ts'
import { grantHandlers } from './grants.ts'
import { groupHandlers } from './groups.ts'
import { identityProviderHandlers } from './identity-provider.ts'
import { integrationGrantHandlers } from './integration-grants.ts'
import { integrationHandlers, integrationToolHandlers } from './integrations.ts'
import { keyHandlers } from './keys.ts'
import { localMemberHandlers } from './local-members.ts'
import { meHandlers } from './me.ts'
import { modelHandlers } from './models.ts'
import { type Handlers, mountEndpoints, mountOpenEndpoints } from './mount-endpoints.ts'
import { organizationHandlers } from './organizations.ts'
import { overviewHandlers } from './overview.ts'
import { policyHandlers } from './policies.ts'
import { providerHandlers } from './providers.ts'
import { retentionHandlers } from './retention.ts'
import { runHandlers } from './runs.ts'
import { signInHandlers } from './sign-in.ts'
import { returnFromProvider } from './sign-in-return.ts'
import { toolSettingsHandlers } from './tool-settings.ts'
import { usageHandlers } from './usage.ts'
import { userHandlers } from './users.ts'
import { vaultHandlers } from './vault.ts'

const limitLength = limitBody(MAXIMUM_BODY_BYTES)

const handlers: Handlers = {
  ...signInHandlers,
  ...meHandlers,
  ...localMemberHandlers,
  ...organizationHandlers,
  ...identityProviderHandlers,
  ...retentionHandlers,
  ...userHandlers,
  ...erasureHandlers,
  ...groupHandlers,
  ...keyHandlers,
  ...grantHandlers,
  ...policyHandlers,
  ...toolSettingsHandlers,
  ...integrationHandlers,
  ...integrationToolHandlers,
  ...integrationGrantHandlers,
  ...connectionHandlers,
  ...agentHandlers,
  ...runHandlers,
  ...attentionHandlers,
  ...overviewHandlers,
  ...findHandlers,
  ...callHandlers,
  ...creditHandlers,
  ...usageHandlers,
  ...auditHandlers,
  ...auditExportHandlers,
  ...auditVerificationHandlers,
  ...providerHandlers,
  ...modelHandlers,
  ...vaultHandlers,
}

/**
 * The management API, to be mounted at `/api`. What signs in comes first, for anyone. `administer` admits the administration token
 * and sessions. `organizationScope` checks that the organization in the path exists, and is that of the session. Each endpoint
 * checks its permission; each handler checks that the other ids in its path belong to the organization.
 */
export const managementRoutes = new Hono<AppEnv>()
  .use(limitDeclaredLength)
  .route('/', mountOpenEndpoints(handlers, [visit(), limitLength]))
  // A page that identity providers send browsers to, not an endpoint.
  .get('/sign-in/oidc/callback', visit(), returnFromProvider)
  .use(administer(), limitLength)
  .use('/organizations/:organizationId/*', organizationScope())
  // The description of this API, made from the table of its endpoints.
  .get('/openapi.json', (context) => staticFile(context))
  .route('/', mountEndpoints(handlers))
