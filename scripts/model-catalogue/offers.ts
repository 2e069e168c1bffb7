import type { Vendor } from './vendors.ts'

/**
 * Models that are offered today, and answer in text over the protocols of the gateway. Left out: retired generations,
 * audio, realtime, image, embedding and moderation models, and models that only the responses API serves. Models that the
 * price list has not are in `corrections.ts`.
 *
 * Of vendors with few models that change often, a model is listed where the price file of litellm 1.109.1 (read
 * 2026-11-29) has it without a date of its end.
 */
interface Offers {
  /** Ids that the price list has as well. */
  listed?: RegExp
  /** Ids that the price list files under another name. */
  filed?: Readonly<Record<string, string>>
  /** Vendors whose offers this vendor has, at the same prices, where it has no entry of its own. */
  resold?: readonly Vendor[]
}

const bedrockClaude = (names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [`anthropic.${name}`, `global.anthropic.${name}`]))

export const OFFERS: Readonly<Record<Vendor, Offers>> = {
  openai: {
    listed:
      /^(gpt-4o|gpt-4o-mini|gpt-4\.1(-mini|-nano)?|gpt-5(\.\d)?(-mini|-nano|-luna|-sol|-terra)?|gpt-6(-\w+)?|o3|o3-mini|o4-mini)$/,
  },
  anthropic: { listed: /^claude-(haiku|sonnet|opus|fable)-\d(-\d+)?$/ },
  aws: {
    listed:
      /^(amazon\.nova-(micro|lite|pro|premier)-v1:0|deepseek\.r1-v1:0|google\.gemma-3-\w+-it|meta\.llama(3-3|4-).*|mistral\.(devstral-2|magistral|ministral-3|mistral-large-3|pixtral).*|openai\.gpt-oss-\d+b-1:0|qwen\.qwen3-.*|writer\.palmyra-.*)$/,
    filed: {
      ...bedrockClaude([
        'claude-haiku-4-5-20251001-v1:0',
        'claude-sonnet-4-5-20250929-v1:0',
        'claude-opus-5',
        'claude-opus-5-5',
      ]),
      // The price list adds a version to the ids of later models, which have none at Bedrock.
      'anthropic.claude-opus-4-5-20251101-v1:0': 'global.anthropic.claude-opus-4-5-v1:0',
      'anthropic.claude-opus-4-6-v1': 'global.anthropic.claude-opus-4-6-v1:0',
      'anthropic.claude-opus-4-7': 'global.anthropic.claude-opus-4-7-v1:0',
      'anthropic.claude-opus-4-8': 'global.anthropic.claude-opus-4-8-v1:0',
      'anthropic.claude-sonnet-4-6': 'global.anthropic.claude-sonnet-4-6-v1:0',
      'anthropic.claude-sonnet-5': 'global.anthropic.claude-sonnet-5-v1:0',
      'anthropic.claude-fable-5': 'global.anthropic.claude-fable-5-v1:0',
      'anthropic.claude-fable-5-1': 'global.anthropic.claude-fable-5-1-v1:0',
      'anthropic.claude-opus-4-1-20250805-v1:0': 'regional.anthropic.claude-opus-4-1-20250805-v1:0',
      'amazon.nova-2-lite-v1:0': 'global.amazon.nova-2-lite-v1:0',
      'openai.gpt-5.6-luna': 'global.openai.gpt-5.6-luna',
      'openai.gpt-5.6-sol': 'global.openai.gpt-5.6-sol',
      'openai.gpt-5.6-terra': 'global.openai.gpt-5.6-terra',
      'nvidia.nemotron-nano-3-30b': 'nvidia.nemotron-nano-3-30b:0',
      'nvidia.nemotron-nano-9b-v2': 'nvidia.nemotron-nano-9b-v2:0',
      'nvidia.nemotron-super-3-120b': 'nvidia.nemotron-super-3-120b:0',
    },
  },
  google: {
    listed:
      /^(gemini-2\.5-(pro|flash|flash-lite)|gemini-3(\.\d)?-(pro-preview|flash|flash-preview|flash-lite)|claude-(opus|sonnet|fable)-\d(-\d+)?)$/,
    filed: { 'claude-opus-4-1': 'claude-4-opus' },
  },
  // Deployments have names of their own; the entries have those of the models.
  azure: {
    listed: /^(o3-mini|o4-mini|phi-4|phi-4-(mini|multimodal)-instruct)$/,
    resold: ['openai', 'anthropic'],
  },
  mistral: {
    listed:
      /^(codestral-2508|devstral-2512|ministral-(3|8|14)b-2512|ministral-8b-latest|mistral-large-2512|mistral-medium-(3-5|latest)|mistral-small-(2603|latest))$/,
    filed: {
      'mistral-large-latest': 'mistral-large',
      'magistral-medium-latest': 'magistral-medium',
      'magistral-small-latest': 'magistral-small',
      'open-mistral-nemo': 'mistral-nemo',
    },
  },
  groq: { listed: /^openai\/gpt-oss-(20b|120b)$/ },
  'x-ai': { listed: /^grok-(4\.20|4\.20-multi-agent|4\.[356]|build-0\.1|code-fast-1)$/ },
  deepseek: { listed: /^deepseek-v4-(flash|pro)$/ },
  // What the price list has of it ended in 2025.
  together: {},
  fireworks: {
    filed: {
      'accounts/fireworks/models/glm-5p1': 'glm-5p1',
      'accounts/fireworks/models/gpt-oss-20b': 'gpt-oss-20b',
      'accounts/fireworks/models/kimi-k2p5': 'kimi-k2p5',
      'accounts/fireworks/models/kimi-k3': 'kimi-k3',
      'accounts/fireworks/routers/kimi-k3-fast': 'kimi-k3-fast',
      'accounts/fireworks/routers/kimi-k3-us': 'kimi-k3-us',
      'accounts/fireworks/models/minimax-m2p1': 'minimax-m2p1',
      'accounts/fireworks/models/minimax-m3': 'minimax-m3',
      'accounts/fireworks/models/qwen3p7-plus': 'qwen3p7-plus',
    },
  },
  openrouter: {
    listed:
      /^(amazon\/nova-.*|anthropic\/claude-(fable|haiku|opus|sonnet)-(4\.\d|5(\.\d)?)|google\/gemini-(2\.5|3)(\.\d)?-(pro|flash|flash-lite|flash-preview|pro-preview)|mistralai\/(codestral|devstral|ministral)-.*|mistralai\/mistral-(large-2512|medium-3.*)|moonshotai\/kimi-k[23].*|openai\/(gpt-4\.1.*|gpt-4o|gpt-4o-mini|gpt-5(\.\d)?(-mini|-nano|-luna|-sol|-terra)?|gpt-6-\w+|gpt-oss-20b|o3|o3-mini|o4-mini)|qwen\/qwen3\.[67]-(flash|plus|max)|x-ai\/grok-(4\.\d+|build-0\.1)|z-ai\/glm-5\..*|minimax\/minimax-m2\.1|deepseek\/deepseek-v3\.1-terminus)$/,
  },
}
