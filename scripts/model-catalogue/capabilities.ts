import type { Vendor } from './vendors.ts'

interface Capability {
  word: string
  /** Names of models at their makers. */
  models: RegExp
  except?: RegExp
  /** Vendors where it holds; absent for all. */
  vendors?: readonly Vendor[]
}

const MESSAGES: readonly Vendor[] = ['anthropic', 'aws', 'google', 'azure']
const CHAT: readonly Vendor[] = ['mistral', 'x-ai', 'together', 'fireworks', 'openrouter']

/**
 * Features of models that translation needs and the price list lacks. A word holds for the models that its pattern matches
 * and its exception does not, at the vendors of its line.
 *
 * - `reasoning`: takes `reasoning_effort` or `thinking`. GPT-5.3 is offered as the chat model that does not think. Groq's
 *   Qwen takes only `none` and `default`. https://platform.openai.com/docs/guides/reasoning,
 *   https://docs.claude.com/en/docs/build-with-claude/extended-thinking, https://console.groq.com/docs/reasoning
 * - `adaptive_thinking`: takes `thinking: {type: adaptive}` and `output_config.effort`, from generation 4.6 on; later
 *   ones refuse a budget. https://docs.claude.com/en/docs/build-with-claude/adaptive-thinking
 * - `thinks_by_default`: thinks where the request has no `thinking`, from generation 5 on. Before it, thinking is off until it is
 *   requested. https://platform.claude.com/docs/en/about-claude/models/whats-new-opus-5 (read 2026-11-24)
 * - `json_schema`: output is held to a schema. At Anthropic and in Foundry from generation 4.5 on, on Bedrock and Vertex for
 *   some models (and only where the operator allows `output_config`), over Converse for those whose card has it.
 *   https://docs.claude.com/en/docs/build-with-claude/structured-outputs,
 *   https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html
 * - `json_object`: any JSON object; messages and Converse have no such mode.
 * - `vision`: takes images.
 * - `tools_without_reasoning`: takes tools on chat completions only with `reasoning_effort: none`, from GPT-5.4 on.
 *   https://github.com/openai/openai-openapi/issues/541
 */
const CAPABILITIES: readonly Capability[] = [
  { word: 'reasoning', models: /^claude-/ },
  { word: 'reasoning', models: /^(gpt-[5-9]|gpt-oss|o\d)/, except: /^gpt-5\.3$/ },
  { word: 'reasoning', models: /^(gemini-|nova-2-|grok-|deepseek-v4|deepseek-flash|deepseek-v3\.|r1|v3\.)/ },
  {
    word: 'reasoning',
    models: /^(magistral-|mistral-(medium|small-|large-4)|kimi-k(2-thinking|2\.[67]|3)|glm-|minimax-m[23])/,
  },
  { word: 'reasoning', models: /^qwen3\./, except: /^qwen3\.8-27b$/ },
  { word: 'adaptive_thinking', models: /^claude-[a-z]+-(4-[6-9]|[5-9])/, vendors: MESSAGES },
  { word: 'thinks_by_default', models: /^claude-[a-z]+-[5-9]/, vendors: MESSAGES },
  { word: 'tools_without_reasoning', models: /^gpt-(5\.([4-9]|\d\d)|[6-9])/, vendors: ['openai', 'azure'] },
  { word: 'json_object', models: /^(gpt-|o\d|phi-)/, vendors: ['openai', 'azure'] },
  { word: 'json_object', models: /^gemini-/ },
  { word: 'json_object', models: /./, vendors: ['groq', 'deepseek', ...CHAT], except: /^(claude|nova)-/ },
  { word: 'json_schema', models: /^(gpt-|o\d)/, vendors: ['openai', 'azure'] },
  { word: 'json_schema', models: /^gemini-/ },
  {
    word: 'json_schema',
    models: /^claude-[a-z]+-(4-[5-9]|[5-9])/,
    vendors: ['anthropic', 'azure', 'openrouter'],
  },
  { word: 'json_schema', models: /^claude-(haiku-4-5|sonnet-4-[56]|opus-4-[56])$/, vendors: ['aws'] },
  {
    word: 'json_schema',
    models: /^claude-(sonnet-4-6|opus-4-[67]|opus-5-5|fable-5-1)$/,
    vendors: ['google'],
  },
  {
    word: 'json_schema',
    models: /^(ministral-3|mistral-large-3|v3\.|qwen3-|glm-5|nemotron-nano-3)/,
    vendors: ['aws'],
  },
  { word: 'json_schema', models: /./, vendors: ['groq', ...CHAT], except: /^(claude|nova)-/ },
  { word: 'vision', models: /^claude-/ },
  { word: 'vision', models: /^(gpt-|o\d)/, except: /^(o3-mini|gpt-oss.*)$/ },
  { word: 'vision', models: /^(gemini|gemma|grok|nova)-/, except: /^(nova-micro.*|grok-code-fast-1)$/ },
  {
    word: 'vision',
    models: /^(ministral|magistral|pixtral)-|^mistral-(large|medium|small)-/,
    except: /-2402|-2407/,
  },
  {
    word: 'vision',
    models: /^(qwen3-vl|qwen3\.|kimi-k(2\.[5-7]|3)|minimax-m3|glm-5\.3-flash|phi-4-multimodal|llama4-)/,
  },
  { word: 'vision', models: /^deepseek-(v4-|v4\.1-)?flash/ },
]

const ORDER = ['reasoning', 'adaptive_thinking', 'thinks_by_default', 'tools_without_reasoning']

/** @param name of the model at its maker. @returns the words of the catalogue, each once. */
export function capabilitiesOf(vendor: Vendor, name: string): string[] {
  const words = CAPABILITIES.filter(
    ({ models, except, vendors }) =>
      models.test(name) && except?.test(name) !== true && (vendors?.includes(vendor) ?? true),
  ).map(({ word }) => word)
  const others = ['json_object', 'json_schema', 'vision']
  return [...ORDER, ...others].filter((word) => words.includes(word))
}
