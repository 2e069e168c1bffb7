import { Hono } from 'hono'
import { MAXIMUM_BODY_BYTES } from '../../../wire/body-limit.ts'
import type { AppEnv } from '../../context.ts'
import { administer } from '../../middleware/administer.ts'
import { limitDeclaredLength } from '../../middleware/declared-length.ts'
import { limitBody } from '../../middleware/limit-body.ts'
import { agentManagementRoutes } from './agents.ts'
import { auditRoutes } from './audit.ts'
import { connectionManagementRoutes } from './connections.ts'
import { creditRoutes } from './credits.ts'
import { dlpRoutes } from './dlp.ts'
import { grantRoutes } from './grants.ts'
import { groupRoutes } from './groups.ts'
import { integrationGrantRoutes } from './integration-grants.ts'
import { integrationToolRoutes } from './integration-tools.ts'
import { integrationRoutes } from './integrations.ts'
import { keyRoutes } from './keys.ts'
import { modelManagementRoutes } from './models.ts'
import { organizationRoutes } from './organizations.ts'
import { providerRoutes } from './providers.ts'
import { organizationScope } from './request.ts'
import { runManagementRoutes } from './runs.ts'
import { toolSettingsRoutes } from './tool-settings.ts'
import { usageRoutes } from './usage.ts'
import { userRoutes } from './users.ts'
import { vaultRoutes } from './vault.ts'

const limitLength = limitBody(MAXIMUM_BODY_BYTES)

/**
 * The management API, to be mounted at `/api`. `administer` admits administrators only. `organizationScope` checks that the
 * organization in the path exists and may be administered. Each route checks that the other ids in its path belong to it.
 */
export const managementRoutes = new Hono<AppEnv>()
  .use(limitDeclaredLength, administer(), limitLength)
  .use('/organizations/:organizationId/*', organizationScope())
  .route('/', organizationRoutes)
  .route('/', userRoutes)
  .route('/', groupRoutes)
  .route('/', keyRoutes)
  .route('/', grantRoutes)
  .route('/', dlpRoutes)
  .route('/', toolSettingsRoutes)
  .route('/', integrationRoutes)
  .route('/', integrationToolRoutes)
  .route('/', integrationGrantRoutes)
  .route('/', vaultRoutes)
  .route('/', connectionManagementRoutes)
  .route('/', agentManagementRoutes)
  .route('/', runManagementRoutes)
  .route('/', creditRoutes)
  .route('/', usageRoutes)
  .route('/', auditRoutes)
  .route('/', providerRoutes)
  .route('/', modelManagementRoutes)
