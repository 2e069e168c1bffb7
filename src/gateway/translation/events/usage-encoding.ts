import type { Usage } from '../../../governance/credits.ts'

/** Usage as chat completions tell it: cached and cache-written tokens are part of the prompt there. */
export function chatUsage(usage: Usage): Record<string, unknown> {
  const written = usage.cacheWrite5Minutes + usage.cacheWrite1Hour
  const prompt = usage.input + usage.cacheRead + written
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: written },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  }
}

/** Usage as the messages protocol tells it. */
export function messagesUsage(usage: Usage): Record<string, unknown> {
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: usage.cacheWrite5Minutes + usage.cacheWrite1Hour,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWrite5Minutes,
      ephemeral_1h_input_tokens: usage.cacheWrite1Hour,
    },
    output_tokens: usage.output,
  }
}
