import type { MessageRules } from '../../protocols/chat-message-rules.ts'
import type { Json } from '../../protocols/json.ts'
import type { UpstreamOperation } from '../transport.ts'

/**
 * Makers and servers whose models speak chat completions, and how they differ from OpenAI. Members that a maker ignores
 * are not listed: only what breaks calls, or changes the answer without a sign.
 */

/** How one maker's chat completions differ. */
export interface Maker {
  /** Before `/chat/completions`. */
  baseUrl: string
  /** Whether it answers without a key. */
  isKeyless?: true
  /** Operations besides chat completions, with their paths. */
  paths?: Readonly<Partial<Record<UpstreamOperation, string>>>
  /** The only top-level members that it takes; absent for all. */
  taken?: readonly string[]
  /** Members that it refuses and that only tune the answer, or that it ignores. */
  dropped?: readonly string[]
  /** Members that it refuses and that change nothing about its answer. */
  moved?: readonly string[]
  renamed?: Readonly<Record<string, string>>
  /** What is sent in place of a member, by its text. */
  replaced?: Readonly<Record<string, Readonly<Record<string, Json>>>>
  messages?: MessageRules
  /** The models whose tool calls have thought signatures. */
  signedCalls?: RegExp
  /** Capabilities of models in the catalogue that it does not have. */
  withheld?: readonly string[]
  repeatsReasoning?: true
}

/** Records and caches of OpenAI's platform. */
const OF_OPENAI = ['prompt_cache_key', 'prompt_cache_retention', 'safety_identifier', 'store', 'verbosity']
const COMPLETIONS = { completions: '/completions' }
/** Servers that have only the older name, or older versions that do. */
const OLD_LIMIT = { max_completion_tokens: 'max_tokens' }

/** Efforts as levels that a maker has, by the levels of chat completions that it has not. */
const efforts = (levels: Readonly<Record<string, string>>): Record<string, Json> =>
  Object.fromEntries(Object.entries(levels).map(([given, sent]) => [given, { reasoning_effort: sent }]))

export const MAKERS = {
  /** Unknown members are 422, within messages as well. Usage comes with every stream. https://docs.mistral.ai/api */
  mistral: {
    baseUrl: 'https://api.mistral.ai/v1',
    taken: [
      'frequency_penalty',
      'max_tokens',
      'max_completion_tokens',
      'messages',
      'model',
      'n',
      'parallel_tool_calls',
      'prediction',
      'presence_penalty',
      'prompt_mode',
      'random_seed',
      'reasoning_effort',
      'response_format',
      'safe_prompt',
      'seed',
      'stop',
      'stream',
      'temperature',
      'tool_choice',
      'tools',
      'top_p',
    ],
    moved: ['stream_options'],
    renamed: { ...OLD_LIMIT, seed: 'random_seed' },
    replaced: { tool_choice: { required: { tool_choice: 'any' } } },
    messages: { shortToolIds: true, toolNames: true, callsWithoutText: true, refusalsAsText: true },
  },
  /** https://console.groq.com/docs/openai */
  groq: {
    baseUrl: 'https://api.groq.com/openai/v1',
    dropped: ['logit_bias'],
  },
  /** Models that reason refuse penalties; pieces of reasoning repeat while they think. https://docs.x.ai/docs/guides/reasoning */
  xai: {
    baseUrl: 'https://api.x.ai/v1',
    dropped: ['frequency_penalty', 'logit_bias', 'presence_penalty'],
    repeatsReasoning: true,
  },
  /** Models think by default, and have three efforts and no schemas. https://api-docs.deepseek.com/guides/thinking_mode */
  deepseek: {
    baseUrl: 'https://api.deepseek.com',
    renamed: OLD_LIMIT,
    replaced: {
      reasoning_effort: {
        ...efforts({ minimal: 'low', medium: 'high', xhigh: 'max' }),
        none: { thinking: { type: 'disabled' } },
      },
    },
    messages: { reasoningContent: true },
    withheld: ['json_schema'],
  },
  together: {
    baseUrl: 'https://api.together.xyz/v1',
    paths: COMPLETIONS,
    renamed: OLD_LIMIT,
  },
  /** Models are named `accounts/fireworks/models/…`. */
  fireworks: {
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    paths: COMPLETIONS,
    renamed: OLD_LIMIT,
  },
  /** Errors may come with status 200, and comments before the first chunk. */
  openrouter: {
    baseUrl: 'https://openrouter.ai/api/v1',
    paths: COMPLETIONS,
  },
  /** `tool_choice` would be ignored: it is dropped, and named in `x-headgate-dropped`. https://docs.ollama.com/openai */
  ollama: {
    baseUrl: 'http://127.0.0.1:11434/v1',
    isKeyless: true,
    paths: COMPLETIONS,
    dropped: ['tool_choice'],
    renamed: OLD_LIMIT,
  },
  vllm: {
    baseUrl: 'http://127.0.0.1:8000/v1',
    isKeyless: true,
    paths: COMPLETIONS,
  },
  /** Unknown members are 400, and so are efforts above `high`. https://ai.google.dev/gemini-api/docs/openai */
  'gemini-openai': {
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    dropped: [...OF_OPENAI, 'logit_bias'],
    replaced: { reasoning_effort: efforts({ xhigh: 'high', max: 'high' }) },
    messages: { imagesWithoutDetail: true },
    // From generation 3 on. https://ai.google.dev/gemini-api/docs/thought-signatures
    signedCalls: /gemini-(?![12][.-])/,
  },
} satisfies Readonly<Record<string, Maker>>

export type MakerKind = keyof typeof MAKERS
