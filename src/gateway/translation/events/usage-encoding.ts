import type { Usage } from '../../../ledger/audit-record.ts'
import type { Json } from '../../protocols/json.ts'

const cacheWritten = (usage: Usage) => usage.cacheWrite5Minutes + usage.cacheWrite1Hour

/** Usage of chat completions, whose prompt includes cached and cache-written tokens. */
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
 * Usage of `message_start`.
 * @param usage null when it is not known yet: the counts are placeholders then, as the vendor's own are for output.
 */
export function startUsage(usage: Usage | null): Json {
  return {
    input_tokens: usage?.input ?? 0,
    cache_creation_input_tokens: usage ? cacheWritten(usage) : 0,
    cache_read_input_tokens: usage?.cacheRead ?? 0,
    // Other protocols do not report the lifetime of cached tokens.
    cache_creation: null,
    output_tokens: usage?.output || 1,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: null,
  }
}

/** Usage of `message_delta`: cumulative, replacing that of `message_start`. */
export function finalUsage(usage: Usage): Json {
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: cacheWritten(usage),
    cache_read_input_tokens: usage.cacheRead,
    output_tokens: usage.output,
    output_tokens_details: usage.reasoning > 0 ? { thinking_tokens: usage.reasoning } : null,
  }
}
