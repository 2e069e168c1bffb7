import { accessTokens } from '../access-tokens.ts'
import type { CredentialForm, CredentialParts } from '../credential.ts'
import { fixedHeaderTransport } from '../fixed-header-transport.ts'
import { ROUTING_OF_PROXIES } from '../routing-members.ts'
import type { ProviderKindDefinition, RequestTarget, Transport, UpstreamOperation } from '../transport.ts'
import { checkTenant, entraExchange } from './entra.ts'

/** The last dated version that is generally available (https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle). */
const DATED_VERSION = '2024-10-21'

/** A key of the resource, or an application of Entra ID. */
export const AZURE_CREDENTIAL: CredentialForm = {
  api_key: { secret: true, required: true, choice: 'api_key' },
  tenant_id: { secret: false, required: true, choice: 'entra' },
  client_id: { secret: false, required: true, choice: 'entra' },
  client_secret: { secret: true, required: true, choice: 'entra' },
}

const PATHS: Readonly<Partial<Record<UpstreamOperation, string>>> = {
  chat_completions: '/chat/completions',
  completions: '/completions',
}

/**
 * Azure OpenAI; the upstream model is the name of a deployment. The base URL of a resource selects its v1 API. One that ends
 * in `/openai` selects the dated API, which has the deployment in the path.
 */
export const azureOpenAi: ProviderKindDefinition = {
  credential: AZURE_CREDENTIAL,
  // "On your data" searches at an address of the request, with a credential of the request.
  routingMembers: new Set([...ROUTING_OF_PROXIES, 'data_sources', 'datasources']),
  check: checkTenant,
  hosts: /\.(openai\.azure\.com|services\.ai\.azure\.com|cognitiveservices\.azure\.com)$/,
  connect(baseUrl, parts) {
    const { headers, ...authorization } = authorizationOf(parts, 'api-key')
    const isDated = baseUrl.endsWith('/openai')
    const root = isDated || baseUrl.endsWith('/openai/v1') ? baseUrl : `${baseUrl}/openai/v1`
    const transport = fixedHeaderTransport({ baseUrl: root, paths: PATHS, headers, forwarded: {} })
    return { ...transport, ...(isDated && datedApi(transport, root)), ...authorization }
  },
}

/** @param keyHeader the name of the header of a key. */
export function authorizationOf(
  parts: CredentialParts,
  keyHeader: string,
): Pick<Transport, 'authorize' | 'renew'> & { headers: Record<string, string> } {
  const { api_key: key, tenant_id = '', client_id = '', client_secret = '' } = parts
  if (key !== undefined) return { headers: { [keyHeader]: key }, authorize: null }
  const credential = ['azure', tenant_id, client_id, client_secret]
  return { headers: {}, ...accessTokens(credential, entraExchange(parts)) }
}

function datedApi(transport: Transport, root: string): Pick<Transport, 'speaks' | 'prepare'> {
  return {
    speaks: (operation, upstreamModel) =>
      PATHS[operation] !== undefined && !upstreamModel.split('/').some((step) => /^\.{1,2}$/.test(step)),
    prepare: (target, body) => ({ ...transport.prepare(target, body), url: root + datedPath(target) }),
  }
}

const datedPath = ({ operation, upstreamModel }: RequestTarget): string =>
  `/deployments/${encodeURIComponent(upstreamModel)}${PATHS[operation]}?api-version=${DATED_VERSION}`
