import type { Usage } from '../../ledger/audit-record.ts'
import type { OutputItem, ResponseObject, ResponseSettings, ResponseUsage } from '../../wire/responses.ts'
import type { ResponseHead } from './response-head.ts'

/** The active tools, as a response shows them. */
type ShownTools = ReadonlyArray<Record<string, unknown>>

/**
 * A new response: in progress, without output, with every member present. A member that the request leaves out has the
 * default of the official API. A sampling parameter is never null, since Open Responses requires numbers
 * (https://www.openresponses.org/specification).
 */
export function initialResponse(
  settings: ResponseSettings,
  tools: ShownTools,
  {
    responseId,
    createdAt,
    conversationId,
    compatibility,
  }: Pick<ResponseHead, 'responseId' | 'createdAt' | 'conversationId' | 'compatibility'>,
): ResponseObject {
  return {
    id: responseId,
    object: 'response',
    created_at: Math.floor(createdAt / 1000),
    completed_at: null,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    access_programs: null,
    background: settings.background ?? false,
    conversation: conversationId === null ? null : { id: conversationId },
    previous_response_id: settings.previous_response_id ?? null,
    instructions: settings.instructions ?? null,
    model: settings.model,
    output: [],
    output_text: '',
    store: settings.store !== false,
    metadata: settings.metadata ?? {},
    usage: null,
    ...toolMembers(settings, tools),
    ...generationMembers(settings),
    ...callerMembers(settings),
    ...(compatibility !== 'headgate' && { compatibility }),
  }
}

const toolMembers = (settings: ResponseSettings, tools: ShownTools) => ({
  tools: [...tools],
  tool_choice: settings.tool_choice ?? 'auto',
  parallel_tool_calls: settings.parallel_tool_calls ?? true,
  // The limit counts calls of tools that this service runs, not of functions of the caller.
  max_tool_calls: settings.max_tool_calls ?? null,
})

const generationMembers = (settings: ResponseSettings) => ({
  max_output_tokens: settings.max_output_tokens ?? null,
  text: { ...settings.text, format: settings.text?.format ?? { type: 'text' } },
  reasoning: settings.reasoning
    ? {
        ...settings.reasoning,
        effort: settings.reasoning.effort ?? null,
        summary: settings.reasoning.summary ?? null,
      }
    : null,
  truncation: settings.truncation ?? ('disabled' as const),
  temperature: settings.temperature ?? 1,
  top_p: settings.top_p ?? 1,
  top_logprobs: settings.top_logprobs ?? 0,
  presence_penalty: settings.presence_penalty ?? 0,
  frequency_penalty: settings.frequency_penalty ?? 0,
})

const callerMembers = (settings: ResponseSettings) => ({
  service_tier: settings.service_tier ?? 'default',
  safety_identifier: settings.safety_identifier ?? null,
  prompt_cache_key: settings.prompt_cache_key ?? null,
  user: settings.user ?? null,
})

/**
 * Usage in tokens as this surface reports it: cache reads and writes are part of the input.
 * @param usage null when it is unknown: the figures are zero then, since clients ignore a last event without figures.
 */
export function responseUsage(usage: Usage | null): ResponseUsage {
  const cached = usage?.cacheRead ?? 0
  const written = (usage?.cacheWrite5Minutes ?? 0) + (usage?.cacheWrite1Hour ?? 0)
  const input = (usage?.input ?? 0) + cached + written
  const output = usage?.output ?? 0
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage?.reasoning ?? 0 },
    total_tokens: input + output,
  }
}

/** All text of the output's messages, joined as in the official clients: without refusals. */
export function outputTextOf(output: readonly OutputItem[]): string {
  return output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('')
}
