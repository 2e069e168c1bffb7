import type { Usage } from '../../../governance/credits.ts'
import type { Json } from '../json.ts'

const cacheWritten = (usage: Usage) => usage.cacheWrite5Minutes + usage.cacheWrite1Hour

/** Usage as chat completions tell it: cached and cache-written tokens are part of the prompt there. */
export function chatUsage(usage: Usage): Json {
  const prompt = usage.input + usage.cacheRead + cacheWritten(usage)
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: cacheWritten(usage) },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  }
}

/**
 * Usage as `message_start` of the messages protocol tells it.
 * @param usage null when it is not known yet: the figures are placeholders then, as the vendor's own are for output.
 */
export function startUsage(usage: Usage | null): Json {
  return {
    input_tokens: usage?.input ?? 0,
    cache_creation_input_tokens: usage ? cacheWritten(usage) : 0,
    cache_read_input_tokens: usage?.cacheRead ?? 0,
    // Other protocols do not say for how long a token was written to the cache.
    cache_creation: null,
    output_tokens: usage?.output || 1,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: null,
  }
}

/** Usage as `message_delta` of the messages protocol tells it: cumulative, over what `message_start` told. */
export function finalUsage(usage: Usage): Json {
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: cacheWritten(usage),
    cache_read_input_tokens: usage.cacheRead,
    output_tokens: usage.output,
    output_tokens_details: usage.reasoning > 0 ? { thinking_tokens: usage.reasoning } : null,
  }
}
