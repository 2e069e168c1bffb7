import type { Vendor } from './vendors.ts'

/** Dollars for a million tokens. */
export interface Dollars {
  input: number
  output: number
  cacheRead?: number | undefined
  /** For five minutes. */
  cacheWrite?: number | undefined
  cacheWriteHour?: number | undefined
  /** Of a million tokens of sound. */
  audioInput?: number | undefined
  /** Prices of input and output of a call with more than so many tokens of input; null for none. */
  longContext?: { above: number; input: number; output: number } | null | undefined
}

/** A price that the list has wrong. */
export interface WrongPrice {
  vendor: Vendor
  id: string
  /** What is wrong, for the name of its test. */
  mistake: string
  /** The wrong prices, as the list has them: once they differ, the correction has to go. */
  listed: Partial<Dollars>
  prices: Partial<Dollars>
  /** The page with the right ones, as the price file of litellm 1.109.1 cites it (read 2026-11-29). */
  source: string
}

/** A model that the list lacks, or takes for another one. */
export interface MissingModel {
  vendor: Vendor
  id: string
  /** The entry that the list's own matching takes the id for; null for none. */
  takenFor: string | null
  contextWindow: number
  prices: Dollars
  source: string
}

/** An inference profile of Bedrock whose price the list takes for that of another region. */
export interface WrongProfile {
  model: string
  profile: string
  takenFor: string
  /** Of the price of the model. */
  percent: number
  source: string
}

const AWS =
  'https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonBedrock/current/us-east-1/index.json'
const BEDROCK = 'https://aws.amazon.com/bedrock/pricing/'
const VERTEX = 'https://cloud.google.com/vertex-ai/generative-ai/pricing'
const GEMINI = 'https://ai.google.dev/gemini-api/docs/pricing'
const CLAUDE = 'https://platform.claude.com/docs/en/about-claude/pricing'
const OPENAI = 'https://developers.openai.com/api/docs/pricing'
const AZURE = 'https://azure.microsoft.com/en-us/pricing/details/azure-openai/'
const PHI = 'https://azure.microsoft.com/en-us/pricing/details/phi-3/'
const MISTRAL = 'https://docs.mistral.ai/models/'
const XAI = 'https://api.x.ai/v1/language-models'
const DEEPSEEK = 'https://api-docs.deepseek.com/quick_start/pricing'
const TOGETHER = 'https://api.together.ai/v1/models'
const FIREWORKS = 'https://fireworks.ai/pricing'

export const WRONG_PRICES: readonly WrongPrice[] = [
  {
    vendor: 'aws',
    id: 'anthropic.claude-sonnet-4-5-20250929-v1:0',
    mistake: 'no higher price above 200,000 tokens on Bedrock',
    listed: { longContext: null },
    prices: { longContext: { above: 200_000, input: 6, output: 22.5 } },
    source: AWS,
  },
  {
    vendor: 'google',
    id: 'claude-opus-4-6',
    mistake: 'a higher price above 200,000 tokens, which ended with the beta of the window',
    listed: { longContext: { above: 200_000, input: 10, output: 37.5 } },
    prices: { longContext: null },
    source: VERTEX,
  },
  {
    vendor: 'azure',
    id: 'o4-mini',
    mistake: 'cached input at a rounded price',
    listed: { cacheRead: 0.28 },
    prices: { cacheRead: 0.275 },
    source: AZURE,
  },
  {
    vendor: 'azure',
    id: 'phi-4',
    mistake: 'the price of another host',
    listed: { input: 0.07, output: 0.14 },
    prices: { input: 0.125, output: 0.5 },
    source: PHI,
  },
  {
    vendor: 'azure',
    id: 'phi-4-mini-instruct',
    mistake: 'the price of another host',
    listed: { input: 0.08, output: 0.35 },
    prices: { input: 0.075, output: 0.3 },
    source: PHI,
  },
  {
    vendor: 'azure',
    id: 'phi-4-multimodal-instruct',
    mistake: 'the price of another host',
    listed: { input: 0.05, output: 0.1 },
    prices: { input: 0.08, output: 0.32 },
    source: PHI,
  },
  {
    vendor: 'mistral',
    id: 'mistral-large-latest',
    mistake: 'the alias at the price of Mistral Large 2',
    listed: { input: 2, output: 6, cacheRead: undefined },
    prices: { input: 0.5, output: 1.5, cacheRead: 0.05 },
    source: `${MISTRAL}mistral-large-3-25-12`,
  },
  {
    vendor: 'mistral',
    id: 'mistral-small-latest',
    mistake: 'the alias at the price of an earlier Mistral Small',
    listed: { input: 0.1, output: 0.3, cacheRead: undefined },
    prices: { input: 0.15, output: 0.6, cacheRead: 0.015 },
    source: `${MISTRAL}mistral-small-4-0-26-03`,
  },
  {
    vendor: 'mistral',
    id: 'magistral-medium-latest',
    mistake: 'the alias at the price of Magistral, which Mistral Medium 3.5 has replaced',
    listed: { input: 2, output: 5, cacheRead: undefined },
    prices: { input: 1.5, output: 7.5, cacheRead: 0.15 },
    source: `${MISTRAL}mistral-medium-3-5-26-04`,
  },
  {
    vendor: 'mistral',
    id: 'magistral-small-latest',
    mistake: 'the alias at the price of Magistral, which Mistral Small 4 has replaced',
    listed: { input: 0.5, output: 1.5, cacheRead: undefined },
    prices: { input: 0.15, output: 0.6, cacheRead: 0.015 },
    source: `${MISTRAL}mistral-small-4-0-26-03`,
  },
  {
    vendor: 'mistral',
    id: 'open-mistral-nemo',
    mistake: 'half of the price, and none of cached input',
    listed: { input: 0.15, output: 0.15, cacheRead: undefined },
    prices: { input: 0.3, output: 0.3, cacheRead: 0.03 },
    source: `${MISTRAL}mistral-nemo-12b-24-07`,
  },
  {
    vendor: 'x-ai',
    id: 'grok-4.20-multi-agent',
    mistake: 'another price than Grok 4.20, and no higher one above 200,000 tokens',
    listed: { input: 2, output: 6, longContext: null },
    prices: { input: 1.25, output: 2.5, longContext: { above: 199_999, input: 2.5, output: 5 } },
    source: XAI,
  },
  {
    vendor: 'x-ai',
    id: 'grok-code-fast-1',
    mistake: 'the price of the retired model, whose name now calls Grok Build 0.1',
    listed: { input: 0.2, output: 1.5, cacheRead: 0.02, longContext: null },
    prices: { input: 1, output: 2, cacheRead: 0.2, longContext: { above: 199_999, input: 2, output: 4 } },
    source: XAI,
  },
  {
    vendor: 'deepseek',
    id: 'deepseek-v4-flash',
    mistake: 'the prices before V4.1 took its name',
    listed: { input: 0.44, output: 1.32, cacheRead: 0.014 },
    prices: { input: 0.3, output: 1.2, cacheRead: 0.006 },
    source: DEEPSEEK,
  },
  {
    vendor: 'fireworks',
    id: 'accounts/fireworks/routers/kimi-k3-us',
    mistake: 'ten percent for the region, which costs fifty',
    listed: { input: 3.3, output: 16.5, cacheRead: 0.33 },
    prices: { input: 4.5, output: 22.5, cacheRead: 0.45 },
    source: FIREWORKS,
  },
  {
    vendor: 'fireworks',
    id: 'accounts/fireworks/models/minimax-m2p1',
    mistake: 'no price of cached input',
    listed: { cacheRead: undefined },
    prices: { cacheRead: 0.03 },
    source: FIREWORKS,
  },
]

const gpt6 = (scale: number): Dollars => ({
  input: 2 * scale,
  output: 10 * scale,
  cacheRead: 0.2 * scale,
  cacheWrite: 2.5 * scale,
  longContext: { above: 272_000, input: 4 * scale, output: 15 * scale },
})
const gpt61 = (scale: number): Dollars => ({ ...gpt6(scale), cacheRead: 0.1 * scale })

const SONNET_5_5: Dollars = { input: 2, output: 10, cacheRead: 0.1, cacheWrite: 2.5, cacheWriteHour: 4 }
const HAIKU_5_5: Dollars = {
  input: 0.1,
  output: 0.5,
  cacheRead: 0.01,
  cacheWrite: 0.125,
  cacheWriteHour: 0.2,
  longContext: { above: 100_000, input: 0.5, output: 2.5 },
}
const MILLION = 1_000_000
const MEBI = 1_048_576

type Missing = [id: string, takenFor: string | null, contextWindow: number, prices: Dollars, source?: string]

const missing = (vendor: Vendor, page: string, rows: readonly Missing[]): MissingModel[] =>
  rows.map(([id, takenFor, window, prices, source = page]) => ({
    vendor,
    id,
    takenFor,
    contextWindow: window,
    prices,
    source,
  }))

export const MISSING_MODELS: readonly MissingModel[] = [
  ...missing('openai', OPENAI, [
    ['gpt-6.1-sol', null, 1_050_000, gpt61(1)],
    ['gpt-6.1-terra', null, 1_050_000, gpt61(0.5)],
  ]),
  ...missing('anthropic', CLAUDE, [
    ['claude-sonnet-5-5', 'claude-sonnet-5', MILLION, SONNET_5_5],
    ['claude-haiku-5-5', null, MILLION, HAIKU_5_5],
  ]),
  ...missing('aws', AWS, [
    ['anthropic.claude-sonnet-5-5', 'regional.anthropic.claude-sonnet-5-v1:0', MILLION, SONNET_5_5],
    ['anthropic.claude-haiku-5-5', null, MILLION, HAIKU_5_5],
    ['openai.gpt-6-sol', null, MILLION, gpt6(1), BEDROCK],
    ['openai.gpt-6-luna', null, MILLION, gpt6(0.05), BEDROCK],
    ['openai.gpt-6.1-sol', null, MILLION, gpt61(1), BEDROCK],
    ['openai.gpt-6.1-terra', null, 922_000, gpt61(0.5), BEDROCK],
    ['deepseek.v3.2', null, 163_840, { input: 0.62, output: 1.85 }],
    ['minimax.minimax-m2.5', null, 196_000, { input: 0.3, output: 1.2 }],
    ['moonshotai.kimi-k2.5', null, 256_000, { input: 0.6, output: 3 }],
    ['moonshotai.kimi-k3', null, MILLION, { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }],
    ['qwen.qwen3-235b-a22b-2507-v1:0', null, 262_144, { input: 0.22, output: 0.88 }],
    ['xai.grok-4.6', null, 500_000, { input: 2, output: 6, cacheRead: 0.5 }],
    ['zai.glm-5', null, 200_000, { input: 1, output: 3.2 }],
  ]),
  ...missing('google', VERTEX, [
    [
      'claude-haiku-4-5',
      null,
      200_000,
      { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25, cacheWriteHour: 2 },
    ],
    [
      'claude-opus-4-5',
      null,
      200_000,
      { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25, cacheWriteHour: 10 },
    ],
    ['claude-sonnet-5', null, MILLION, { ...SONNET_5_5, cacheRead: 0.2 }],
    ['claude-sonnet-5-5', null, MILLION, SONNET_5_5],
    ['claude-haiku-5-5', null, MILLION, HAIKU_5_5],
    ['gemini-4-argon', null, MEBI, { input: 2, output: 10, cacheRead: 0.1 }, GEMINI],
  ]),
  ...missing('mistral', MISTRAL, [
    ['devstral-latest', null, 256_000, { input: 0.4, output: 2, cacheRead: 0.04 }],
    ['ministral-3b-latest', null, 131_072, { input: 0.1, output: 0.1, cacheRead: 0.01 }],
    ['ministral-14b-latest', null, 262_144, { input: 0.2, output: 0.2, cacheRead: 0.02 }],
    [
      'mistral-large-4',
      null,
      MEBI,
      { input: 1.36, output: 4.18, cacheRead: 0.14 },
      `${MISTRAL}mistral-large-4`,
    ],
  ]),
  ...missing('groq', 'https://console.groq.com/docs/models', [
    [
      'openai/gpt-oss-safeguard-20b',
      'openai/gpt-oss-120b',
      131_072,
      { input: 0.075, output: 0.3, cacheRead: 0.037 },
    ],
    ['qwen/qwen3.8-27b', null, 131_072, { input: 0.8, output: 4 }],
  ]),
  ...missing('x-ai', XAI, [
    [
      'grok-4.7',
      null,
      500_000,
      { input: 2, output: 6, cacheRead: 0.5, longContext: { above: 199_999, input: 4, output: 12 } },
    ],
  ]),
  ...missing('deepseek', DEEPSEEK, [
    ['deepseek-flash', null, MILLION, { input: 0.3, output: 1.2, cacheRead: 0.006 }],
  ]),
  ...missing('together', TOGETHER, [
    ['openai/gpt-oss-120b', null, 131_072, { input: 0.15, output: 0.6 }],
    ['moonshotai/Kimi-K3', null, MEBI, { input: 3, output: 15, cacheRead: 0.3 }],
    ['zai-org/GLM-5.2', null, MEBI, { input: 1.4, output: 4.4, cacheRead: 0.26 }],
    ['zai-org/GLM-5.3', null, MEBI, { input: 1.4, output: 4.4, cacheRead: 0.26 }],
    ['zai-org/GLM-5.3-Flash', null, MEBI, { input: 0.15, output: 0.5, cacheRead: 0.03 }],
    ['deepseek-ai/DeepSeek-V4.1-Flash', null, MEBI, { input: 0.3, output: 1.2, cacheRead: 0.006 }],
    ['deepseek-ai/DeepSeek-V4-Pro-0813', null, MEBI, { input: 1.32, output: 3.96, cacheRead: 0.13 }],
    ['Qwen/Qwen3.5-9B', null, 262_144, { input: 0.17, output: 0.25 }],
    ['meta-models/Muse-Spark-Open-816B-A42B', null, MEBI, { input: 1.25, output: 4.25, cacheRead: 0.15 }],
  ]),
  ...missing('fireworks', FIREWORKS, [
    ['accounts/fireworks/models/glm-5p3', null, MEBI, { input: 1.4, output: 4.4, cacheRead: 0.26 }],
    ['accounts/fireworks/models/glm-5p3-flash', null, MEBI, { input: 0.15, output: 0.5, cacheRead: 0.03 }],
    [
      'accounts/fireworks/models/deepseek-v4p1-flash',
      null,
      MEBI,
      { input: 0.3, output: 1.2, cacheRead: 0.006 },
    ],
  ]),
]

const REGIONAL_NOVA_2 = 'regional.amazon.nova-2-lite-v1:0'

type Profile = [model: string, profile: string, takenFor: string, percent: number]

/** Rounded up, because a percentage is a whole number. */
const PROFILES: readonly Profile[] = [
  ['amazon.nova-micro-v1:0', 'eu', 'amazon.nova-micro-v1:0', 132],
  ['amazon.nova-micro-v1:0', 'apac', 'amazon.nova-micro-v1:0', 106],
  ['amazon.nova-lite-v1:0', 'eu', 'amazon.nova-lite-v1:0', 130],
  ['amazon.nova-lite-v1:0', 'apac', 'amazon.nova-lite-v1:0', 105],
  ['amazon.nova-pro-v1:0', 'eu', 'amazon.nova-pro-v1:0', 132],
  ['amazon.nova-pro-v1:0', 'apac', 'amazon.nova-pro-v1:0', 105],
  ['amazon.nova-2-lite-v1:0', 'eu', REGIONAL_NOVA_2, 144],
  ['amazon.nova-2-lite-v1:0', 'jp', REGIONAL_NOVA_2, 133],
]

export const WRONG_PROFILES: readonly WrongProfile[] = PROFILES.map(
  ([model, profile, takenFor, percent]) => ({
    model,
    profile,
    takenFor,
    percent,
    source: AWS,
  }),
)
