import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, present, textOf } from '../json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { COMPLETION_MEMBERS } from './completion-members.ts'
import { refuseMembers } from './member-rules.ts'

/** https://platform.openai.com/docs/api-reference/completions/create */
const DEFAULT_MAX_TOKENS = 16
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
  const tokens = prompts.some((text) => typeof text === 'number' || Array.isArray(text))
  throw invalidRequest(
    tokens
      ? 'prompt: prompts of tokens are not supported by this model: send them as text.'
      : 'prompt: Input should be a string or an array of strings.',
  )
}

/**
 * One prompt of a legacy completion request as a chat completion request.
 * @param target tells which name for the maximum the model knows, when the request goes to a chat upstream.
 * @throws ApiError invalid_request naming the member that chat completions do not have.
 */
export function completionToChat(request: Json, prompt: string, target?: TargetModel): Json {
  refuseMembers(request, COMPLETION_MEMBERS)
  const maximum = Number(request.max_tokens ?? DEFAULT_MAX_TOKENS)
  const reasons = target !== undefined && can(target, 'reasoning')
  const members = Object.entries(COMPLETION_MEMBERS).filter(([, { treatment }]) => treatment === 'kept')
  return present({
    model: request.model,
    messages: [{ role: 'user', content: prompt }],
    ...Object.fromEntries(members.map(([name]) => [name, request[name]])),
    max_tokens: reasons ? undefined : maximum,
    max_completion_tokens: reasons ? maximum : undefined,
  })
}
