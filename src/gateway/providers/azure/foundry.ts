import { ANTHROPIC_VERSION, anthropic } from '../anthropic/anthropic.ts'
import { fixedHeaderTransport } from '../fixed-header-transport.ts'
import { ANTHROPIC_HEADERS } from '../forwarded-headers.ts'
import type { ProviderKindDefinition } from '../transport.ts'
import { AZURE_CREDENTIAL, authorizationOf } from './azure-openai.ts'
import { checkTenant } from './entra.ts'

/**
 * Claude in Microsoft Foundry: the messages protocol below `/anthropic` of a resource, where authorization alone differs
 * (https://platform.claude.com/docs/en/build-with-claude/claude-in-microsoft-foundry). The upstream model is the name of a
 * deployment.
 */
export const foundry: ProviderKindDefinition = {
  credential: AZURE_CREDENTIAL,
  routingMembers: anthropic.routingMembers,
  check: checkTenant,
  hosts: /\.(services\.ai\.azure\.com|azure-api\.net)$/,
  connect(baseUrl, parts) {
    const { headers, ...authorization } = authorizationOf(parts, 'x-api-key')
    const root = baseUrl.endsWith('/anthropic') ? baseUrl : `${baseUrl}/anthropic`
    const transport = fixedHeaderTransport({
      baseUrl: root,
      paths: { messages: '/v1/messages', count_tokens: '/v1/messages/count_tokens' },
      headers: { ...headers, ...ANTHROPIC_VERSION },
      forwarded: ANTHROPIC_HEADERS,
    })
    return { ...transport, ...authorization }
  },
}
