import { NO_USAGE, type Usage } from '../../governance/credits.ts'

type Counts = Record<string, unknown>

/** More than any model reads or writes. Larger and negative counts are faults of the upstream and are ignored. */
const MOST_TOKENS = 1_000_000_000

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= MOST_TOKENS
const count = (value: unknown): number => (isCount(value) ? Math.floor(value) : 0)
/** Absent, or a count within the limits. */
const isCredible = (value: unknown): boolean => typeof value !== 'number' || isCount(value)
const member = (value: unknown): Counts =>
  typeof value === 'object' && value !== null ? (value as Counts) : {}

/**
 * Usage of chat completions and completions. `prompt_tokens` includes cached and cache-written tokens there, and
 * `completion_tokens` reasoning (https://platform.openai.com/docs/api-reference/chat/object).
 * @returns null when the value is not a usage object.
 */
export function usageOfChat(value: unknown): Usage | null {
  const usage = member(value)
  if (!isCount(usage.prompt_tokens) && !isCount(usage.completion_tokens)) return null
  if (!isCredible(usage.prompt_tokens) || !isCredible(usage.completion_tokens)) return null
  const details = member(usage.prompt_tokens_details)
  const prompt = count(usage.prompt_tokens)
  // DeepSeek and Moonshot have other names for cached tokens.
  const cached = details.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens
  const cacheRead = count(cached)
  const cacheWrite = count(details.cache_write_tokens)
  const reasoning = count(member(usage.completion_tokens_details).reasoning_tokens)
  return {
    input: Math.max(0, prompt - cacheRead - cacheWrite),
    cacheRead,
    cacheWrite5Minutes: cacheWrite,
    cacheWrite1Hour: 0,
    output: outputOfChat(usage, prompt, reasoning),
    reasoning,
  }
}

/**
 * xAI counts reasoning outside `completion_tokens` (https://docs.x.ai/docs/guides/reasoning), as its total shows. Such
 * tokens are charged like all output.
 */
function outputOfChat(usage: Counts, prompt: number, reasoning: number): number {
  const completion = count(usage.completion_tokens)
  const beside = reasoning > 0 && count(usage.total_tokens) === prompt + completion + reasoning
  return beside ? completion + reasoning : completion
}

/**
 * Usage of a chat completion or of one of its chunks, wherever the server puts it: Groq has sent it under `x_groq`,
 * Moonshot sends it with the last choice. @returns null when there is none.
 */
export function usageOfChatBody(value: unknown): Usage | null {
  const body = member(value)
  const choices = Array.isArray(body.choices) ? body.choices : []
  return (
    usageOfChat(body.usage) ??
    usageOfChat(member(body.x_groq).usage) ??
    usageOfChat(member(choices[choices.length - 1]).usage)
  )
}

/**
 * Usage of messages, merged into the usage known so far. On a stream figures are cumulative: a later one replaces an
 * earlier one, and an absent or null one changes nothing. `input_tokens` excludes cached tokens there.
 * @returns null when the value counts neither input nor output.
 */
export function usageOfMessages(value: unknown, known: Usage | null): Usage | null {
  const usage = member(value)
  if (!isCount(usage.input_tokens) && !isCount(usage.output_tokens)) return null
  const before = known ?? NO_USAGE
  const details = member(usage.cache_creation)
  const hour = number(details.ephemeral_1h_input_tokens) ?? before.cacheWrite1Hour
  // Later events count cache writes in one figure, without their lifetimes.
  const written = number(usage.cache_creation_input_tokens)
  return {
    input: number(usage.input_tokens) ?? before.input,
    cacheRead: number(usage.cache_read_input_tokens) ?? before.cacheRead,
    cacheWrite5Minutes:
      number(details.ephemeral_5m_input_tokens) ??
      (written === null ? before.cacheWrite5Minutes : Math.max(0, written - hour)),
    cacheWrite1Hour: hour,
    output: number(usage.output_tokens) ?? before.output,
    reasoning: number(member(usage.output_tokens_details).thinking_tokens) ?? before.reasoning,
  }
}

const number = (value: unknown): number | null => (isCount(value) ? Math.floor(value) : null)
