import { invalidRequest } from '../../../lib/api-error.ts'
import { joinBytes } from '../../../lib/byte-edits.ts'
import { isPresent, type Json, numberOf, present, textOf } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { COMPLETION_MEMBERS } from './completion-members.ts'
import { restoreLargeStrings } from './large-strings.ts'
import { refuseLostMembers } from './member-rules.ts'
import { leastEffort, samplingFor } from './reasoning.ts'

/** https://platform.openai.com/docs/api-reference/completions/create */
const DEFAULT_MAX_TOKENS = 16
/** The default for a chat model that reasons: reasoning counts, and takes hundreds of tokens at the lowest effort. */
const DEFAULT_REASONING_TOKENS = 4_096

/** @returns the maximum of tokens that a translated completion requests by default. */
export const defaultCompletionTokens = (capabilities: readonly string[]): number =>
  capabilities.includes('reasoning') ? DEFAULT_REASONING_TOKENS : DEFAULT_MAX_TOKENS

/**
 * The prompt of a legacy completion request. Several clients always send a list, even of one prompt.
 * @throws ApiError invalid_request for several prompts, which would be several calls, and for prompts of token ids,
 * which another model's tokenizer cannot read.
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
/** Bytes. An echoed prompt is held as text, which takes up to twice the memory. */
const MOST_ECHOED = 8 * 1024 * 1024

/**
 * @param request without its long texts. @param cut those texts, from `cutLargeStrings`.
 * @returns the prompt as the caller wrote it, to precede the answers.
 * @throws ApiError invalid_request for a prompt above the limit.
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
  refuseLostMembers(request, COMPLETION_MEMBERS)
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

/** A completion is plain text, so the request has the lowest effort. */
function reasoningMembers({ max_tokens, ...members }: Json, chatModel: TargetModel): Json {
  const effort = leastEffort(chatModel)
  const standard = effort === 'none' ? DEFAULT_MAX_TOKENS : DEFAULT_REASONING_TOKENS
  return {
    ...samplingFor(members, chatModel),
    max_completion_tokens: max_tokens ?? Math.min(standard, chatModel.maxOutputTokens),
    reasoning_effort: effort,
  }
}
