import type { ModelPrices } from '../schema/models.ts'
import type { CredentialParts } from '../src/gateway/providers/credential.ts'
import type { ProviderKind } from '../src/gateway/providers/provider.ts'
import { SCRIPTED_AZURE } from './local/model-upstream/vendors/azure/azure.ts'
import { SCRIPTED_AWS } from './local/model-upstream/vendors/bedrock/scripted-aws.ts'
import { SCRIPTED_FOUNDRY } from './local/model-upstream/vendors/foundry/foundry.ts'
import { SCRIPTED_GEMINI } from './local/model-upstream/vendors/gemini/gemini.ts'
import { scriptedAccount } from './local/model-upstream/vendors/vertex/scripted-account.ts'
import { CATALOGUE } from './model-catalogue/catalogue.ts'
import { StartError } from './node/start-error.ts'

/** A provider that is to be in the database, with the models it serves. */
export interface WantedProvider {
  /** `openai` and `anthropic` are the vendors; `scripted-…` are served by the local upstream. */
  name: (typeof REGISTERED_PROVIDERS)[number]
  kind: ProviderKind
  baseUrl: string
  credential: string | CredentialParts
  models: WantedModel[]
}

export interface WantedModel {
  id: string
  ownedBy: string
  contextWindow: number
  maxOutputTokens: number
  prices: ModelPrices
  /** Words of the catalogue, such as `reasoning`, `json_schema` and `completions`. */
  capabilities: string[]
  /** The model's name at the provider, where it has another one there. */
  upstreamModel?: string
}

/** Every provider name that this file may register: one that is not in use any more is disabled. */
export const REGISTERED_PROVIDERS = [
  'openai',
  'anthropic',
  'scripted-openai',
  'scripted-anthropic',
  'scripted-bedrock',
  'scripted-vertex',
  'scripted-foundry',
  'scripted-azure',
  'scripted-gemini',
] as const

/**
 * The providers of the environment: a real one for each key that is set, the scripted upstream for the others.
 *
 * @param environment OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
 * @param scriptedUpstream its URL, or null when it does not run
 * @throws StartError naming a base URL that is none
 */
export function wantedProviders(
  environment: NodeJS.ProcessEnv,
  scriptedUpstream: string | null,
): WantedProvider[] {
  const wanted: WantedProvider[] = []
  const { OPENAI_API_KEY, ANTHROPIC_API_KEY } = environment
  if (OPENAI_API_KEY) {
    const baseUrl = baseUrlOf(environment, 'OPENAI_BASE_URL', 'https://api.openai.com/v1')
    const models = catalogueModels('openai')
    wanted.push({ name: 'openai', kind: 'openai-compatible', baseUrl, credential: OPENAI_API_KEY, models })
  } else if (scriptedUpstream !== null) {
    wanted.push(scriptedOpenAi(scriptedUpstream))
  }
  if (ANTHROPIC_API_KEY) {
    const baseUrl = baseUrlOf(environment, 'ANTHROPIC_BASE_URL', 'https://api.anthropic.com')
    const models = catalogueModels('anthropic')
    wanted.push({ name: 'anthropic', kind: 'anthropic', baseUrl, credential: ANTHROPIC_API_KEY, models })
  } else if (scriptedUpstream !== null) {
    wanted.push(scriptedAnthropic(scriptedUpstream))
  }
  if (scriptedUpstream !== null) wanted.push(...scriptedVendors(scriptedUpstream))
  return wanted
}

/** Whether the scripted upstream serves any provider of this environment. */
export function needsScriptedUpstream(environment: NodeJS.ProcessEnv): boolean {
  return !(environment.OPENAI_API_KEY && environment.ANTHROPIC_API_KEY)
}

function baseUrlOf(environment: NodeJS.ProcessEnv, name: string, fallback: string): string {
  const text = environment[name] || fallback
  if (!/^https?:\/\/./.test(text) || !URL.canParse(text))
    throw new StartError(`${name} is not an http(s) URL`)
  return text.replace(/\/+$/, '')
}

function catalogueModels(vendor: 'openai' | 'anthropic'): WantedModel[] {
  return CATALOGUE.models
    .filter((model) => model.vendor === vendor)
    .map(({ id, ownedBy, contextWindow, maxOutputTokens, prices, capabilities }) => ({
      id,
      ownedBy,
      contextWindow,
      maxOutputTokens,
      prices,
      capabilities,
    }))
}

const scriptedOpenAi = (url: string): WantedProvider => ({
  name: 'scripted-openai',
  kind: 'openai-compatible',
  baseUrl: `${url}/v1`,
  credential: 'scripted-upstream',
  models: [
    scriptedModel('scripted-chat', 'openai', 1, ['completions', 'json_object', 'json_schema', 'vision']),
    scriptedModel('scripted-chat-large', 'openai', 5, ['json_object', 'json_schema', 'vision']),
    // A server of the protocol that has neither JSON modes nor images nor a token counter.
    scriptedModel('scripted-chat-plain', 'openai', 1, ['completions']),
    scriptedModel('scripted-chat-reasoning', 'openai', 2, [
      'reasoning',
      'json_object',
      'json_schema',
      'vision',
    ]),
  ],
})

/** Tokens that coding agents request of an unknown model, thinking included: the scripted upstream refuses more. */
const THINKING_OUTPUT = 32_000

const scriptedAnthropic = (url: string): WantedProvider => ({
  name: 'scripted-anthropic',
  kind: 'anthropic',
  baseUrl: url,
  credential: 'scripted-upstream',
  models: [
    scriptedModel('scripted-messages', 'anthropic', 1, ['json_schema', 'vision']),
    // Adaptive thinking; refuses a budget and a prefilled answer.
    {
      ...scriptedModel('scripted-messages-adaptive', 'anthropic', 2, [
        'reasoning',
        'adaptive_thinking',
        'json_schema',
        'vision',
      ]),
      maxOutputTokens: THINKING_OUTPUT,
    },
    scriptedModel('scripted-messages-large', 'anthropic', 5, ['json_schema', 'vision']),
    // An earlier generation: thinks within a budget, without output formats.
    {
      ...scriptedModel('scripted-messages-thinking', 'anthropic', 2, ['reasoning', 'vision']),
      maxOutputTokens: THINKING_OUTPUT,
    },
  ],
})

/** One model of each vendor that speaks a protocol over a transport of its own. */
const scriptedVendors = (url: string): WantedProvider[] => [
  {
    name: 'scripted-bedrock',
    kind: 'bedrock',
    baseUrl: `${url}/vendors/bedrock`,
    credential: {
      region: SCRIPTED_AWS.region,
      access_key_id: SCRIPTED_AWS.accessKeyId,
      secret_access_key: SCRIPTED_AWS.secretAccessKey,
    },
    models: [
      {
        ...scriptedModel('scripted-bedrock-claude', 'anthropic', 3, ['json_schema', 'vision']),
        upstreamModel: 'us.anthropic.claude-scripted-messages-v1:0',
      },
      {
        ...scriptedModel('scripted-bedrock-nova', 'amazon', 1, ['json_schema', 'vision']),
        upstreamModel: 'us.amazon.nova-scripted-messages-v1:0',
      },
    ],
  },
  {
    name: 'scripted-vertex',
    kind: 'vertex',
    baseUrl: `${url}/vendors/vertex`,
    credential: { ...scriptedAccount(url), location: 'us-east5' },
    models: [
      {
        ...scriptedModel('scripted-vertex-claude', 'anthropic', 3, ['json_schema', 'vision']),
        upstreamModel: 'claude-scripted@20250929',
      },
    ],
  },
  {
    name: 'scripted-foundry',
    kind: 'foundry',
    baseUrl: `${url}/vendors/foundry`,
    credential: { api_key: SCRIPTED_FOUNDRY.key },
    models: [
      {
        ...scriptedModel('scripted-foundry-claude', 'anthropic', 3, ['json_schema', 'vision']),
        upstreamModel: SCRIPTED_FOUNDRY.deployment,
      },
    ],
  },
  {
    name: 'scripted-azure',
    kind: 'azure-openai',
    baseUrl: `${url}/vendors/azure`,
    credential: { api_key: SCRIPTED_AZURE.key },
    models: [
      {
        ...scriptedModel('scripted-azure-chat', 'openai', 1, ['json_object', 'json_schema', 'vision']),
        upstreamModel: SCRIPTED_AZURE.deployment,
      },
    ],
  },
  {
    name: 'scripted-gemini',
    kind: 'gemini',
    baseUrl: `${url}/vendors/gemini/v1beta`,
    credential: SCRIPTED_GEMINI.key,
    models: [
      {
        ...scriptedModel('scripted-gemini', 'google', 2, [
          'reasoning',
          'json_object',
          'json_schema',
          'vision',
        ]),
        upstreamModel: SCRIPTED_GEMINI.model,
      },
    ],
  },
]

/** Prices in the proportions that both vendors use. @param dollars for a million input tokens */
function scriptedModel(id: string, ownedBy: string, dollars: number, capabilities: string[]): WantedModel {
  const input = dollars * 1_000_000
  const cacheWrites = ownedBy === 'anthropic' ? { five: 1.25, hour: 2 } : { five: 1, hour: 1 }
  return {
    id,
    ownedBy,
    contextWindow: 200_000,
    maxOutputTokens: 16_384,
    prices: {
      input,
      output: input * 5,
      cacheRead: input / 10,
      cacheWrite5Minutes: input * cacheWrites.five,
      cacheWrite1Hour: input * cacheWrites.hour,
      // A hundredth of a dollar for each search; audio costs as much as text.
      units: ownedBy === 'anthropic' ? { web_search: 10_000_000_000 } : { audio_input: input },
    },
    capabilities,
  }
}
