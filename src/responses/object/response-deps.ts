import type { Database } from '../../../schema/database.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { ContentStore } from '../content/content-store.ts'
import type { EngineDeps } from '../engine/engine.ts'
import type { HostedTool } from '../engine/hosted-tool.ts'
import type { ResponseStreamObject } from '../types.ts'

/** What the object of a response reaches out to. */
export interface ResponseDeps extends EngineDeps {
  database: Database
  contentStore: ContentStore
  /** The object of another response. */
  responseStream: (responseId: string) => ResponseStreamObject
  /** The tools of this side that a request asks for; absent while there are none. */
  hostedTools?: (settings: ResponseSettings) => readonly HostedTool[]
  configuration: EngineDeps['configuration'] & {
    RESPONSE_WINDOW_MS: number
    BUFFER_LIMIT_BYTES: number
    KEY_PEPPERS: KeyRing
    VAULT_KEYS: KeyRing
    ORGANIZATION_RATE_LIMIT: number
    USER_RATE_LIMIT: number
  }
}
