import type { Database } from '../../schema/database.ts'
import type { ModelDeps } from '../gateway/invoke-model.ts'
import type { IntegrationCallDeps } from '../integrations/call-integration-tool.ts'
import type { KeyRing } from '../lib/crypto.ts'
import type { ContentStore } from './content/content-store.ts'
import type { ResponseMethods } from './model/types.ts'
import type { HostedTool } from './tools/hosted-tool.ts'
import type { WorkspaceOf } from './tools/workspace/workspace-client.ts'

/** Dependencies of a response object. */
export type ResponseDeps = ModelDeps &
  IntegrationCallDeps & {
    database: Database
    contentStore: ContentStore
    /** Another response in its object. @param organizationId the caller's. */
    responseObject: (organizationId: string, responseId: string) => ResponseMethods
    workspaceOf: WorkspaceOf
    /** Every server-side tool of the deployment. */
    hostedTools: readonly HostedTool[]
    configuration: ModelDeps['configuration'] &
      IntegrationCallDeps['configuration'] & {
        RESPONSE_OBJECTS: 'own' | 'shared'
        RESPONSE_COMMIT_MS: number
        RESPONSE_MAX_TURNS: number
        RESPONSE_TIME_LIMIT_MS: number
        RESPONSE_WINDOW_MS: number
        BUFFER_LIMIT_BYTES: number
        KEY_PEPPERS: KeyRing
        VAULT_KEYS: KeyRing
        ORGANIZATION_RATE_LIMIT: number
        USER_RATE_LIMIT: number
      }
  }
