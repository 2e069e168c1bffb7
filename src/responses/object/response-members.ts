import type { Usage } from '../../governance/credits.ts'
import type { OutputItem, ResponseObject, ResponseSettings, ResponseUsage } from '../../wire/responses.ts'

/** What a response is besides what its request asked for. */
export interface ResponseGiven {
  id: string
  /** Since the epoch. */
  createdSeconds: number
  /** Null for a response that is not stored. */
  conversationId: string | null
  store: boolean
  /** As they are told, hosted ones included. */
  tools: unknown[]
}

/**
 * A response at its beginning: in progress, without output, every member present. Where the request leaves a member
 * out, it has the default of the official API; a sampling parameter is never null, since Open Responses demands numbers
 * (https://www.openresponses.org/specification).
 */
export function initialResponse(settings: ResponseSettings, given: ResponseGiven): ResponseObject {
  return {
    id: given.id,
    object: 'response',
    created_at: given.createdSeconds,
    completed_at: null,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    access_programs: null,
    background: settings.background ?? false,
    conversation: given.conversationId === null ? null : { id: given.conversationId },
    previous_response_id: settings.previous_response_id ?? null,
    instructions: settings.instructions ?? null,
    model: settings.model,
    output: [],
    output_text: '',
    store: given.store,
    metadata: settings.metadata ?? {},
    usage: null,
    ...toolMembers(settings, given.tools),
    ...generationMembers(settings),
    ...callerMembers(settings),
  }
}

const toolMembers = (settings: ResponseSettings, tools: unknown[]) => ({
  tools,
  tool_choice: settings.tool_choice ?? 'auto',
  parallel_tool_calls: settings.parallel_tool_calls ?? true,
  // Only told back: it bounds the calls of hosted tools, which a response here has none of, and not functions
  // (https://platform.openai.com/docs/api-reference/responses/create).
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
 * Usage as this surface tells it, in tokens: what was read from a cache or written to it is part of the input.
 * @param usage null when nothing is known: the figures are zero then, since clients ignore an end without figures.
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

/** All text of the messages of an output, as the official clients join it. Refusals are no text. */
export function outputTextOf(output: readonly OutputItem[]): string {
  return output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('')
}
