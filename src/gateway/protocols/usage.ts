import { NO_USAGE, type Usage } from '../../governance/credits.ts'

type Counts = Record<string, unknown>

const count = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0
const member = (value: unknown): Counts =>
  typeof value === 'object' && value !== null ? (value as Counts) : {}

/**
 * Usage of chat completions and completions. `prompt_tokens` includes cached and cache-written tokens there.
 * @returns null when the value is not a usage object.
 */
export function usageOfChat(value: unknown): Usage | null {
  const usage = member(value)
  if (typeof usage.prompt_tokens !== 'number' && typeof usage.completion_tokens !== 'number') return null
  const prompt = member(usage.prompt_tokens_details)
  const completion = member(usage.completion_tokens_details)
  const cacheRead = count(prompt.cached_tokens)
  const cacheWrite = count(prompt.cache_write_tokens)
  return {
    input: Math.max(0, count(usage.prompt_tokens) - cacheRead - cacheWrite),
    cacheRead,
    cacheWrite5Minutes: cacheWrite,
    cacheWrite1Hour: 0,
    output: count(usage.completion_tokens),
    reasoning: count(completion.reasoning_tokens),
  }
}

/**
 * Usage of messages, over what was known. On a stream figures are cumulative: a later one replaces an earlier one,
 * and an absent or null one changes nothing. `input_tokens` excludes cached tokens there.
 * @returns null when the value counts neither input nor output.
 */
export function usageOfMessages(value: unknown, known: Usage | null): Usage | null {
  const usage = member(value)
  if (typeof usage.input_tokens !== 'number' && typeof usage.output_tokens !== 'number') return null
  const before = known ?? NO_USAGE
  const details = member(usage.cache_creation)
  const hour = number(details.ephemeral_1h_input_tokens) ?? before.cacheWrite1Hour
  // Later events count what was written to the cache in one figure, without its classes.
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

const number = (value: unknown): number | null => (typeof value === 'number' ? count(value) : null)
