import { SCRIPTED_AZURE } from '../../../scripts/local/model-upstream/vendors/azure/azure.ts'
import { SCRIPTED_AWS } from '../../../scripts/local/model-upstream/vendors/bedrock/scripted-aws.ts'
import { SCRIPTED_FOUNDRY } from '../../../scripts/local/model-upstream/vendors/foundry/foundry.ts'
import { SCRIPTED_GEMINI } from '../../../scripts/local/model-upstream/vendors/gemini/gemini.ts'
import { scriptedAccount } from '../../../scripts/local/model-upstream/vendors/vertex/scripted-account.ts'
import type { ProviderKind } from '../../../src/gateway/providers/provider.ts'
import { gateway } from '../../harness/gateway.ts'
import type { GatewayAddress } from '../../harness/start-gateway.ts'
import { administrator, uniqueName } from '../../harness/tenant.ts'

type Credential = string | Record<string, string>

/** A vendor with one way to its models: what the matrices of vendors run over. */
export interface Vendor {
  name: string
  kind: ProviderKind
  /** The path of the scripted vendor, below its server. */
  path: string
  /** The part of a base URL that selects an API of the vendor. */
  suffix: string
  upstreamModel: string
  /** The protocol of the vendor's answers. */
  wire: 'chat' | 'messages' | 'gemini' | 'converse'
  /** The protocol in which scripts for the scripted vendor are written. */
  scripts: 'chat' | 'messages'
  /** A script with usage of every class of tokens; `usage-full` if absent. Mistral reports usage without being asked. */
  usageScript?: 'usage-late'
  /** The credential that the scripted vendor knows. @param url of its server. */
  credential: (url: string) => Credential
}

const SONNET = 'us.anthropic.claude-scripted-messages-v1:0'
const aws = (): Credential => ({
  region: SCRIPTED_AWS.region,
  access_key_id: SCRIPTED_AWS.accessKeyId,
  secret_access_key: SCRIPTED_AWS.secretAccessKey,
})
const google = (url: string): Credential => ({ ...scriptedAccount(url), location: 'us-east5' })

export const VENDORS: readonly Vendor[] = [
  {
    name: 'Claude on Bedrock',
    kind: 'bedrock',
    path: '/vendors/bedrock',
    suffix: '',
    upstreamModel: SONNET,
    wire: 'messages',
    scripts: 'messages',
    credential: aws,
  },
  {
    name: 'Claude on Vertex',
    kind: 'vertex',
    path: '/vendors/vertex',
    suffix: '',
    upstreamModel: 'claude-scripted@20250929',
    wire: 'messages',
    scripts: 'messages',
    credential: google,
  },
  {
    name: 'Claude in Foundry',
    kind: 'foundry',
    path: '/vendors/foundry',
    suffix: '',
    upstreamModel: SCRIPTED_FOUNDRY.deployment,
    wire: 'messages',
    scripts: 'messages',
    credential: () => ({ api_key: SCRIPTED_FOUNDRY.key }),
  },
  {
    name: 'Converse',
    kind: 'bedrock',
    path: '/vendors/bedrock',
    suffix: '',
    upstreamModel: 'us.amazon.nova-scripted-messages-v1:0',
    wire: 'converse',
    scripts: 'messages',
    credential: aws,
  },
  {
    name: 'Gemini',
    kind: 'gemini',
    path: '/vendors/gemini',
    suffix: '/v1beta',
    upstreamModel: SCRIPTED_GEMINI.model,
    wire: 'gemini',
    scripts: 'chat',
    credential: () => SCRIPTED_GEMINI.key,
  },
  {
    name: 'Gemini on Vertex',
    kind: 'vertex',
    path: '/vendors/vertex',
    suffix: '',
    upstreamModel: SCRIPTED_GEMINI.model,
    wire: 'gemini',
    scripts: 'chat',
    credential: google,
  },
  {
    name: 'Azure OpenAI v1',
    kind: 'azure-openai',
    path: '/vendors/azure',
    suffix: '',
    upstreamModel: SCRIPTED_AZURE.deployment,
    wire: 'chat',
    scripts: 'chat',
    credential: () => ({ api_key: SCRIPTED_AZURE.key }),
  },
  {
    name: 'Azure OpenAI dated',
    kind: 'azure-openai',
    path: '/vendors/azure',
    suffix: '/openai',
    upstreamModel: SCRIPTED_AZURE.deployment,
    wire: 'chat',
    scripts: 'chat',
    credential: () => ({ api_key: SCRIPTED_AZURE.key }),
  },
  {
    name: 'Mistral',
    kind: 'mistral',
    path: '',
    suffix: '/v1',
    upstreamModel: 'scripted-chat',
    wire: 'chat',
    scripts: 'chat',
    usageScript: 'usage-late',
    credential: () => uniqueName('mistral-key'),
  },
]

export const namedVendors = VENDORS.map((vendor) => [vendor.name, vendor] as const)

/** The vendor of a name. @throws for another one. */
export function vendorNamed(name: string): Vendor {
  const vendor = VENDORS.find((each) => each.name === name)
  if (!vendor) throw new Error(`no vendor is named ${name}`)
  return vendor
}

/** Another price for each class of tokens, in micro-credits per million. */
export const CLASS_PRICES = {
  input: 1_000_000,
  output: 5_000_000,
  cache_read: 100_000,
  cache_write_5_minutes: 1_250_000,
  cache_write_1_hour: 2_000_000,
}

interface ProviderOptions {
  /** A registered script that answers every request of the provider as it is written; absent for the scripted vendor. */
  rawScript?: string
  credential?: Credential
}

/** A provider of a vendor, of its own. @returns its id and name. */
export async function createVendorProvider(
  vendor: Vendor,
  { rawScript, credential }: ProviderOptions = {},
  address: GatewayAddress = gateway(),
): Promise<{ id: string; name: string }> {
  const url = address.standIns.modelUpstream
  const path = rawScript === undefined ? vendor.path : rawPath(rawScript)
  const name = uniqueName('vendor')
  const provider = await administrator(address).ask<{ id: string }>('POST', '/providers', {
    name,
    kind: vendor.kind,
    base_url: url + path + vendor.suffix,
    credential: credential ?? vendor.credential(url),
  })
  return { id: provider.id, name }
}

/** The path below which a script is played as it is written. @param script as `registerScript` returns it. */
export const rawPath = (script: string): string => `/vendors/raw/${script.replace(/^script:/, '')}`

/** A model with routes to providers, best first. @param routes of a provider, its model, and what it costs in percent. */
export async function createModel(
  routes: ReadonlyArray<{ provider_id: string; upstream_model: string; price_percent?: number }>,
  more: object = {},
  address: GatewayAddress = gateway(),
): Promise<string> {
  const id = uniqueName('vendor-model')
  await administrator(address).ask('PUT', `/models/${id}`, {
    owned_by: 'test',
    context_window: 200_000,
    max_output_tokens: 4_000,
    prices: CLASS_PRICES,
    capabilities: ['reasoning', 'vision', 'json_schema'],
    routes,
    ...more,
  })
  return id
}

/** A model of a vendor, at a provider of its own. */
export async function createVendorModel(
  vendor: Vendor,
  options: ProviderOptions = {},
  address: GatewayAddress = gateway(),
): Promise<{ model: string; provider: string; providerId: string }> {
  const { id, name } = await createVendorProvider(vendor, options, address)
  const model = await createModel([{ provider_id: id, upstream_model: vendor.upstreamModel }], {}, address)
  return { model, provider: name, providerId: id }
}
