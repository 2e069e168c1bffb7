import { NO_USAGE } from '../../calls/usage.ts'
import type { Usage } from '../../ledger/audit-record.ts'

type Counts = Record<string, unknown>

// Figures are read as the upstream reports them, whatever they are: `correctedUsage` decides which can be true.

const isNumber = (value: unknown): value is number => typeof value === 'number'
/** A number of JSON that is too large is infinite, and would make sums and differences no numbers. */
const count = (value: unknown): number =>
  isNumber(value) ? Math.max(-MOST_TOKENS, Math.min(value, MOST_TOKENS)) : 0
const MOST_TOKENS = 1e15
const member = (value: unknown): Counts =>
  typeof value === 'object' && value !== null ? (value as Counts) : {}

/**
 * Usage of chat completions and completions. `prompt_tokens` includes cached and cache-written tokens there, and
 * `completion_tokens` reasoning (https://platform.openai.com/docs/api-reference/chat/object).
 * @returns null when the value is not a usage object.
 */
export function usageOfChat(value: unknown): Usage | null {
  const usage = member(value)
  if (!isNumber(usage.prompt_tokens) && !isNumber(usage.completion_tokens)) return null
  const details = member(usage.prompt_tokens_details)
  const prompt = count(usage.prompt_tokens)
  // DeepSeek and Moonshot have other names for cached tokens.
  const cached = details.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens
  const cacheRead = count(cached)
  const cacheWrite = count(details.cache_write_tokens)
  const outputDetails = member(usage.completion_tokens_details)
  const reasoning = count(outputDetails.reasoning_tokens)
  const units = unitsOf({
    audio_input: count(details.audio_tokens),
    audio_output: count(outputDetails.audio_tokens),
    image_output: count(outputDetails.image_tokens),
    search_sources: count(usage.num_sources_used),
    search_queries: count(usage.num_search_queries),
  })
  const {
    audio_input: audioInput = 0,
    audio_output: audioOutput = 0,
    image_output: imageOutput = 0,
  } = units.units ?? {}
  return {
    ...units,
    input: prompt - cacheRead - cacheWrite - audioInput,
    cacheRead,
    cacheWrite5Minutes: cacheWrite,
    cacheWrite1Hour: 0,
    output: outputOfChat(usage, prompt) - audioOutput - imageOutput,
    reasoning,
  }
}

/** Units that are billed apart; no member where there are none. */
function unitsOf(counts: Record<string, number>): Pick<Usage, 'units'> {
  const units = Object.fromEntries(Object.entries(counts).filter(([, number]) => number !== 0))
  return Object.keys(units).length > 0 ? { units } : {}
}

/**
 * All that the total has beside the prompt was generated: xAI counts reasoning outside `completion_tokens`
 * (https://docs.x.ai/docs/guides/reasoning), and Gemini thoughts in the total alone. They are charged like all output.
 */
function outputOfChat(usage: Counts, prompt: number): number {
  const completion = count(usage.completion_tokens)
  const { prompt_tokens: stated, total_tokens: total } = usage
  return isNumber(stated) && isNumber(total) ? Math.max(completion, count(total) - prompt) : completion
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
  if (!isNumber(usage.input_tokens) && !isNumber(usage.output_tokens)) return null
  const before = known ?? NO_USAGE
  const details = member(usage.cache_creation)
  const hour = number(details.ephemeral_1h_input_tokens) ?? before.cacheWrite1Hour
  // Later events count cache writes in one figure, without their lifetimes.
  const written = number(usage.cache_creation_input_tokens)
  const units = { ...before.units, ...serverToolUnits(usage.server_tool_use) }
  const compaction = compactionTokens(usage.iterations)
  const input = number(usage.input_tokens)
  const output = number(usage.output_tokens)
  return {
    ...unitsOf(units),
    input: input === null ? before.input : input + compaction.input,
    cacheRead: number(usage.cache_read_input_tokens) ?? before.cacheRead,
    cacheWrite5Minutes:
      number(details.ephemeral_5m_input_tokens) ??
      (written === null ? before.cacheWrite5Minutes : written - hour),
    cacheWrite1Hour: hour,
    output: output === null ? before.output : output + compaction.output,
    reasoning: number(member(usage.output_tokens_details).thinking_tokens) ?? before.reasoning,
  }
}

/**
 * Usage of generateContent (https://ai.google.dev/api/generate-content#UsageMetadata). `promptTokenCount` includes cached
 * tokens, and excludes what the provider's tools read; `candidatesTokenCount` excludes thoughts, which are billed as
 * output. Some models state their thoughts in the total only.
 * @returns null when the value counts neither input nor output.
 */
export function usageOfGenerateContent(value: unknown): Usage | null {
  const usage = member(value)
  if (!isNumber(usage.promptTokenCount) && !isNumber(usage.totalTokenCount)) return null
  const prompt = count(usage.promptTokenCount) + count(usage.toolUsePromptTokenCount)
  const cacheRead = count(usage.cachedContentTokenCount)
  const reasoning = count(usage.thoughtsTokenCount)
  const output = Math.max(
    count(usage.candidatesTokenCount) + reasoning,
    count(usage.totalTokenCount) - prompt,
  )
  const heard = tokensOf(usage.promptTokensDetails, 'AUDIO') - tokensOf(usage.cacheTokensDetails, 'AUDIO')
  const spoken = tokensOf(usage.candidatesTokensDetails, 'AUDIO')
  const drawn = tokensOf(usage.candidatesTokensDetails, 'IMAGE')
  return {
    ...unitsOf({ audio_input: heard, audio_output: spoken, image_output: drawn }),
    input: prompt - cacheRead - heard,
    cacheRead,
    cacheWrite5Minutes: 0,
    cacheWrite1Hour: 0,
    output: output - spoken - drawn,
    reasoning,
  }
}

/**
 * Usage of Converse (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html). `inputTokens`
 * excludes tokens that were read from a cache or written to one; `outputTokens` includes reasoning, which is not told.
 * @returns null when the value counts neither input nor output.
 */
export function usageOfConverse(value: unknown): Usage | null {
  const usage = member(value)
  if (!isNumber(usage.inputTokens) && !isNumber(usage.outputTokens)) return null
  const written = count(usage.cacheWriteInputTokens)
  const details = (Array.isArray(usage.cacheDetails) ? usage.cacheDetails : []).map(member)
  const hour = details.reduce((sum, { ttl, inputTokens }) => sum + (ttl === '1h' ? count(inputTokens) : 0), 0)
  return {
    input: count(usage.inputTokens),
    cacheRead: count(usage.cacheReadInputTokens),
    cacheWrite5Minutes: written - hour,
    cacheWrite1Hour: hour,
    output: count(usage.outputTokens),
    reasoning: 0,
  }
}

/** Tokens of one kind of content in a list of them. */
function tokensOf(details: unknown, modality: string): number {
  const parts = (Array.isArray(details) ? details : []).map(member)
  return parts.reduce((sum, part) => sum + (part.modality === modality ? count(part.tokenCount) : 0), 0)
}

/** The other figures leave compaction out. https://docs.claude.com/en/docs/build-with-claude/compaction */
function compactionTokens(iterations: unknown): { input: number; output: number } {
  const passes = (Array.isArray(iterations) ? iterations : []).map(member)
  const sum = (name: string) =>
    passes.reduce((total, pass) => total + (pass.type === 'compaction' ? count(pass[name]) : 0), 0)
  return { input: sum('input_tokens'), output: sum('output_tokens') }
}

/** Uses that cost nothing by themselves: pages that are fetched, and code, which is billed by the time of its container. */
const FREE_USES = new Set(['web_fetch', 'code_execution'])

/** Members such as `web_search_requests`, by the name of their price. */
function serverToolUnits(value: unknown): Record<string, number> {
  const requests = Object.entries(member(value)).flatMap(([name, requests]) =>
    /^[a-z_]{1,50}_requests$/.test(name)
      ? [[name.slice(0, -'_requests'.length), count(requests)] as const]
      : [],
  )
  return Object.fromEntries(requests.filter(([name]) => !FREE_USES.has(name)))
}

const number = (value: unknown): number | null => (isNumber(value) ? count(value) : null)
