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

/**
 * The prompt of a legacy completion request. Lists of one are common: several clients always send a list.
 * @throws ApiError invalid_request for several prompts, each of which would be a call of its own; and for prompts of
 * tokens, which mean nothing to another model's tokenizer.
 */
function promptOf({ prompt }: Json): string {
  const prompts = Array.isArray(prompt) ? prompt : [prompt]
  if (prompts.length === 0 || !isPresent(prompt)) throw invalidRequest('prompt: a prompt is required.')
  if (prompts.some((each) => numberOf(each) !== undefined || Array.isArray(each))) {
    throw invalidRequest(
      'prompt: prompts of tokens are not supported by this model: send the prompt as text.',
    )
  }
  if (!prompts.every((each) => typeof each === 'string')) {
    throw invalidRequest('prompt: Input should be a string or an array of strings.')
  }
  if (prompts.length > 1) {
    throw invalidRequest(
      'prompt: only one prompt is supported by this model: send one request for each prompt, or use a model that ' +
        'serves completions natively.',
    )
  }
  return textOf(prompts[0])
}

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
/** Bytes. An echoed prompt stands in the answer as text, which takes up to twice the memory. */
const MOST_ECHOED = 8 * 1024 * 1024

/**
 * @param request without its long texts. @param cut those, as `cutLargeStrings` gave them.
 * @returns the prompt as the caller wrote it, to be put before the answers.
 * @throws ApiError invalid_request for more than an answer can hold.
 */
export function echoedPrompt(request: Json, cut: readonly Uint8Array[]): string {
  const bytes = cut.reduce((sum, { length }) => sum + length, 0)
  if (bytes > MOST_ECHOED) {
    throw invalidRequest(`echo: a prompt of more than ${MOST_ECHOED} bytes is not echoed by this model.`)
  }
  const pieces = restoreLargeStrings(JSON.stringify(promptOf(request)), cut)
  return JSON.parse(decoder.decode(joinBytes(pieces))) as string
}

/**
 * A legacy completion request as a chat completion request.
 * @param chatModel the model, when the request goes to a chat upstream as it is; none when it is translated further.
 * @throws ApiError invalid_request naming the member that chat completions do not have.
 */
export function completionToChat(request: Json, chatModel?: TargetModel): Json {
  const content = promptOf(request)
  refuseMembers(request, COMPLETION_MEMBERS)
  const names = Object.keys(COMPLETION_MEMBERS).filter(
    (name) => COMPLETION_MEMBERS[name]?.treatment === 'kept',
  )
  const members = Object.fromEntries(names.map((name) => [name, request[name]]))
  return present({
    model: request.model,
    messages: [{ role: 'user', content }],
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
