import { invalidRequest } from '../../../lib/api-error.ts'
import { joinBytes } from '../../../lib/byte-edits.ts'
import { isPresent, type Json, numberOf, present, textOf } from '../json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { COMPLETION_MEMBERS } from './completion-members.ts'
import { restoreLargeStrings } from './large-strings.ts'
import { refuseMembers } from './member-rules.ts'
import { leastEffort, samplingFor } from './reasoning.ts'

/** https://platform.openai.com/docs/api-reference/completions/create */
const DEFAULT_MAX_TOKENS = 16
/**
 * The same of a chat model that reasons. Its reasoning counts, and even the least of it is hundreds of tokens: with 16 it
 * would answer nothing at all.
 */
const DEFAULT_REASONING_TOKENS = 4_096

/** @returns the most tokens that a translated completion without a maximum asks for. */
export const defaultCompletionTokens = (capabilities: readonly string[]): number =>
  capabilities.includes('reasoning') ? DEFAULT_REASONING_TOKENS : DEFAULT_MAX_TOKENS

/** Each prompt is a call upstream: as many as a request may ask choices for. */
const MOST_PROMPTS = 128

/**
 * The prompts of a legacy completion request, each of which is a chat of its own.
 * @throws ApiError invalid_request for prompts of tokens, which mean nothing to another model's tokenizer.
 */
export function completionPrompts(request: Json): string[] {
  const { prompt } = request
  const prompts = Array.isArray(prompt) ? prompt : [prompt]
  if (prompts.length === 0 || !isPresent(prompt))
    throw invalidRequest('prompt: at least one prompt is required.')
  if (prompts.length > MOST_PROMPTS) {
    throw invalidRequest(`prompt: at most ${MOST_PROMPTS} prompts are supported by this model.`)
  }
  if (prompts.every((text) => typeof text === 'string')) return prompts.map(textOf)
  const tokens = prompts.some((text) => numberOf(text) !== undefined || Array.isArray(text))
  throw invalidRequest(
    tokens
      ? 'prompt: prompts of tokens are not supported by this model: send them as text.'
      : 'prompt: Input should be a string or an array of strings.',
  )
}

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
/** Bytes. Prompts that are echoed stand in the answer as texts, which take up to twice the memory. */
const MOST_ECHOED = 8 * 1024 * 1024

/**
 * @param prompts as they are translated. @param cut what was cut out of them.
 * @returns prompts as the caller wrote them, to be told before the answers.
 * @throws ApiError invalid_request for more than an answer can hold.
 */
export function echoedPrompts(prompts: readonly string[], cut: readonly Uint8Array[]): string[] {
  const bytes = cut.reduce((sum, { length }) => sum + length, 0)
  if (bytes > MOST_ECHOED) {
    throw invalidRequest(`echo: prompts of more than ${MOST_ECHOED} bytes are not told back by this model.`)
  }
  const pieces = restoreLargeStrings(JSON.stringify(prompts), cut)
  return JSON.parse(decoder.decode(joinBytes(pieces))) as string[]
}

/**
 * One prompt of a legacy completion request as a chat completion request.
 * @param chatModel the model, when the request goes to a chat upstream as it is; none when it is translated further.
 * @throws ApiError invalid_request naming the member that chat completions do not have.
 */
export function completionToChat(request: Json, prompt: string, chatModel?: TargetModel): Json {
  refuseMembers(request, COMPLETION_MEMBERS)
  const names = Object.keys(COMPLETION_MEMBERS).filter(
    (name) => COMPLETION_MEMBERS[name]?.treatment === 'kept',
  )
  const members = Object.fromEntries(names.map((name) => [name, request[name]]))
  return present({
    model: request.model,
    messages: [{ role: 'user', content: prompt }],
    ...(chatModel && can(chatModel, 'reasoning')
      ? reasoningMembers(members, chatModel)
      : { ...members, max_tokens: members.max_tokens ?? DEFAULT_MAX_TOKENS }),
  })
}

/** What the caller wants is text at once: the model is asked to reason as little as it can. */
function reasoningMembers({ max_tokens, ...members }: Json, chatModel: TargetModel): Json {
  const effort = leastEffort(chatModel)
  const standard = effort === 'none' ? DEFAULT_MAX_TOKENS : DEFAULT_REASONING_TOKENS
  return {
    ...samplingFor(members, chatModel),
    max_completion_tokens: max_tokens ?? Math.min(standard, chatModel.maxOutputTokens),
    reasoning_effort: effort,
  }
}
