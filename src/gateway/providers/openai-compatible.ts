import { SECRET_ONLY } from './credential.ts'
import { fixedHeaderTransport } from './fixed-header-transport.ts'
import { OPENAI_HEADERS } from './forwarded-headers.ts'
import { ROUTING_OF_PROXIES } from './routing-members.ts'
import type { ProviderKindDefinition } from './transport.ts'

/** Chat completions as OpenAI defined them, which most providers speak. The base URL ends before `/chat/completions`. */
export const openaiCompatible: ProviderKindDefinition = {
  credential: SECRET_ONLY,
  routingMembers: new Set(ROUTING_OF_PROXIES),
  connect: (baseUrl, { secret = '' }) =>
    fixedHeaderTransport({
      baseUrl,
      paths: {
        chat_completions: '/chat/completions',
        completions: '/completions',
        input_tokens: '/responses/input_tokens',
      },
      counter: 'responses',
      headers: { authorization: `Bearer ${secret}` },
      forwarded: OPENAI_HEADERS,
    }),
}
