import { SECRET_ONLY } from '../credential.ts'
import { fixedHeaderTransport } from '../fixed-header-transport.ts'
import { ANTHROPIC_HEADERS } from '../forwarded-headers.ts'
import { ROUTING_OF_PROXIES } from '../routing-members.ts'
import type { ProviderKindDefinition } from '../transport.ts'

/** https://docs.anthropic.com/en/api/versioning: the version is required, and callers' own takes its place. */
export const ANTHROPIC_VERSION = { 'anthropic-version': '2023-06-01' }

/** The messages protocol at its own host. */
export const anthropic: ProviderKindDefinition = {
  credential: SECRET_ONLY,
  routingMembers: new Set([
    'billing_policy',
    'fallback_credit_token',
    'fallbacks',
    'user_profile_id',
    'workspace_id',
    ...ROUTING_OF_PROXIES,
  ]),
  connect: (baseUrl, { secret = '' }) =>
    fixedHeaderTransport({
      baseUrl,
      paths: { messages: '/v1/messages', count_tokens: '/v1/messages/count_tokens' },
      headers: { 'x-api-key': secret, ...ANTHROPIC_VERSION },
      forwarded: ANTHROPIC_HEADERS,
    }),
}
