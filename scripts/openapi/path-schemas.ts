import { ENTITLEMENTS } from '../../src/wire/management.ts'

const UUID = { type: 'string', pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' }
const TEXT = { type: 'string', minLength: 1 }

/** The schemas of the parameters of paths, by name. */
export const PATH_SCHEMAS: Readonly<Record<string, object>> = {
  organizationId: UUID,
  userId: UUID,
  groupId: UUID,
  grantId: UUID,
  policyId: UUID,
  providerId: UUID,
  agentId: UUID,
  runId: UUID,
  callId: { type: 'string', pattern: '^[0-9A-Za-z_-]{1,100}$' },
  keyId: { type: 'string', pattern: '^[0-9A-Za-z]{1,40}$' },
  sessionId: { type: 'string', pattern: '^[0-9A-Za-z]{12}$' },
  passkeyId: UUID,
  erasureId: { type: 'string', pattern: '^erasure_[0-9A-Za-z]{22}$' },
  connectionId: { type: 'string', pattern: '^conn_[0-9A-Za-z]{1,60}$' },
  modelId: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}$' },
  entitlement: { type: 'string', enum: ENTITLEMENTS },
  version: { type: 'integer', minimum: 1, maximum: 999_999_999 },
  trigger: TEXT,
  responseId: { type: 'string', pattern: '^resp_' },
  conversationId: { type: 'string', pattern: '^conv_' },
  itemId: TEXT,
  path: TEXT,
  name: TEXT,
}
/** On the public surface the id of an integration is its slug. */
export const INTEGRATION_SLUG = { type: 'string', pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', maxLength: 40 }
export const INTEGRATION_ID = UUID
