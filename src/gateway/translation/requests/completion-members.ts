import { isPresent } from '../json.ts'
import { dropped, kept, type MemberRules, refused, translated } from './member-rules.ts'

const moreThanOne = (value: unknown) => typeof value === 'number' && value > 1

/** Members of a legacy completion request on their way to chat completions; from there as `CHAT_MEMBERS` say. */
export const COMPLETION_MEMBERS: MemberRules = {
  best_of: refused('the best of several completions cannot be chosen on this model.', moreThanOne),
  echo: translated('the prompt is told before the answer'),
  frequency_penalty: kept(),
  logit_bias: kept(),
  logprobs: refused('log probabilities are not supported by this model.', isPresent),
  max_tokens: kept('16 where none is given, as the vendor has it'),
  metadata: dropped('removed on every call'),
  model: translated('the model’s id at its provider'),
  n: kept('choices of each prompt'),
  presence_penalty: kept(),
  prompt: translated('a user message; one call for each prompt'),
  seed: kept(),
  stop: kept(),
  stream: kept(),
  stream_options: kept(),
  suffix: refused('text cannot be inserted before a suffix on this model.', isText),
  temperature: kept(),
  top_p: kept(),
  user: kept(),
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
