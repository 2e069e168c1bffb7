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

const AWS =
  'https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonBedrockFoundationModels/current/index.json'
const VERTEX = 'https://cloud.google.com/gemini-enterprise-agent-platform/generative-ai/pricing'
const AZURE = 'https://azure.microsoft.com/en-us/pricing/details/cognitive-services/openai-service/'
const PHI = 'https://prices.azure.com/api/retail/prices'
const MISTRAL = 'https://docs.mistral.ai/models/'
const XAI = 'https://api.x.ai/v1/language-models'
const DEEPSEEK = 'https://api-docs.deepseek.com/quick_start/pricing'
const FIREWORKS = 'https://docs.fireworks.ai/serverless/pricing'

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
    source: `${MISTRAL}model-cards/mistral-small-4-0-26-03`,
  },
  {
    vendor: 'mistral',
    id: 'magistral-medium-latest',
    mistake: 'the alias at the price of Magistral Medium, where the vendor has Mistral Medium 3.5',
    listed: { input: 2, output: 5, cacheRead: undefined },
    prices: { input: 1.5, output: 7.5, cacheRead: 0.15 },
    source: `${MISTRAL}model-cards/mistral-medium-3-5-26-04`,
  },
  {
    vendor: 'mistral',
    id: 'magistral-small-latest',
    mistake: 'the alias at the price of Magistral Small, where the vendor has Mistral Small 4',
    listed: { input: 0.5, output: 1.5, cacheRead: undefined },
    prices: { input: 0.15, output: 0.6, cacheRead: 0.015 },
    source: `${MISTRAL}model-cards/mistral-small-4-0-26-03`,
  },
  {
    vendor: 'mistral',
    id: 'open-mistral-nemo',
    mistake: 'half of the price, and none of cached input',
    listed: { input: 0.15, output: 0.15, cacheRead: undefined },
    prices: { input: 0.3, output: 0.3, cacheRead: 0.03 },
    source: 'https://mistral.ai/technology/',
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
    mistake: 'the price before it became that of Grok Build 0.1',
    listed: { input: 0.2, output: 1.5, cacheRead: 0.02, longContext: null },
    prices: { input: 1, output: 2, cacheRead: 0.2, longContext: { above: 199_999, input: 2, output: 4 } },
    source: XAI,
  },
  {
    vendor: 'deepseek',
    id: 'deepseek-v4-flash',
    mistake: 'the prices of August 2026',
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
    source: 'https://fireworks.ai/models/fireworks/minimax-m2p1',
  },
]
