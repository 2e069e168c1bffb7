import type { Database } from '../deps.ts'
import type { KeyRing } from '../lib/crypto.ts'
import type { ContentStore } from './content-store.ts'
import type { EngineDeps } from './engine.ts'
import type { ResponseStreamObject } from './types.ts'

/** What the object of a response reaches out to. */
export interface LiveDeps extends EngineDeps {
  database: Database
  contentStore: ContentStore
  /** The object of another response. */
  responseStream: (responseId: string) => ResponseStreamObject
  configuration: EngineDeps['configuration'] & {
    RESPONSE_WINDOW_MS: number
    BUFFER_LIMIT_BYTES: number
    KEY_PEPPERS: KeyRing
    VAULT_KEYS: KeyRing
    ORGANIZATION_RATE_LIMIT: number
    USER_RATE_LIMIT: number
  }
}
