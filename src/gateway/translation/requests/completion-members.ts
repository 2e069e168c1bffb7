import { isPresent, numberOf } from '../../protocols/json.ts'
import { kept, type MemberRules, refused, removed, translated } from './member-rules.ts'

const moreThanOne = (value: unknown) => (numberOf(value) ?? 1) > 1

const NOT_WHILE_REASONING = 'dropped for chat models that reason, which refuse it'

/** Members of a legacy completion request converted to chat completions, and from there by `CHAT_MEMBERS`. */
export const COMPLETION_MEMBERS: MemberRules = {
  best_of: refused('the best of several completions cannot be chosen on this model.', moreThanOne),
  echo: translated('the prompt precedes the answer'),
  frequency_penalty: kept(NOT_WHILE_REASONING),
  logit_bias: kept(NOT_WHILE_REASONING),
  logprobs: refused('log probabilities are not supported by this model.', isPresent),
  max_tokens: kept(
    '16 by default, as at the vendor. For chat models that reason `max_completion_tokens`, 4096 by default, with the ' +
      'lowest effort: their reasoning counts',
    (body) => body.max_tokens ?? body.max_completion_tokens,
  ),
  metadata: removed('removed on every call'),
  model: translated('the model’s id at its provider'),
  n: kept(),
  presence_penalty: kept(NOT_WHILE_REASONING),
  prompt: translated('a user message; several prompts are refused'),
  seed: kept(),
  stop: kept('passed on; chat models that reason may refuse it'),
  stream: kept(),
  stream_options: kept(),
  suffix: refused('text cannot be inserted before a suffix on this model.', isText),
  temperature: kept(NOT_WHILE_REASONING),
  top_p: kept(NOT_WHILE_REASONING),
  user: kept(),
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
