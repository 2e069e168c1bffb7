import * as z from 'zod'

/**
 * Members of model requests that Headgate reads. Other members are sent to the upstream as they are (interface: Chat
 * completions, Messages, Versioning 4). `messages` is checked while it is scanned, so that a large conversation is never
 * parsed into a tree.
 */

const optionalNumber = (name: string) => z.number(`${name} must be a number`).nullish()
const optionalBoolean = (name: string) => z.boolean(`${name} must be a boolean`).nullish()
/** Characters; more than the id of any model has. */
export const LONGEST_MODEL = 256
const model = z
  .string('model is required and must be a string')
  .min(1, 'model must not be empty')
  .max(LONGEST_MODEL, `model is too long (at most ${LONGEST_MODEL} characters)`)
const positiveInteger = (name: string) =>
  z.int(`${name} must be an integer`).positive(`${name} must be a positive integer`)

/** No provider generates more choices at once. */
const choices = (name: string) => positiveInteger(name).max(128, `${name} must be at most 128`).nullish()

const responseFormat = z.looseObject({ type: z.string('response_format.type must be a string') })
const streamOptions = z.looseObject(
  { include_usage: z.boolean().nullish() },
  'stream_options must be an object',
)

/**
 * Members that decide the price of a call or its bounds, on whichever server. Their values are not checked: the upstream refuses
 * wrong ones.
 */
const billed = {
  service_tier: z.unknown().optional(),
  speed: z.unknown().optional(),
  inference_geo: z.unknown().optional(),
  container: z.unknown().optional(),
  thinking: z.unknown().optional(),
}

/** Names under which servers of chat completions take a maximum or budget of tokens, beside `max_tokens`. */
export const OTHER_OUTPUT_LIMITS = ['max_output_tokens', 'max_new_tokens', 'max_gen_tokens'] as const

const chatBilled = {
  ...billed,
  ...Object.fromEntries(OTHER_OUTPUT_LIMITS.map((name) => [name, z.unknown().optional()])),
  reasoning: z.unknown().optional(),
  reasoning_effort: z.unknown().optional(),
  enable_thinking: z.unknown().optional(),
  thinking_budget: z.unknown().optional(),
  modalities: z.unknown().optional(),
  audio: z.unknown().optional(),
  prediction: z.unknown().optional(),
  web_search_options: z.unknown().optional(),
  search_parameters: z.unknown().optional(),
}

export const chatCompletionRequest = z.looseObject({
  ...chatBilled,
  model,
  stream: optionalBoolean('stream'),
  stream_options: streamOptions.nullish(),
  temperature: optionalNumber('temperature'),
  max_tokens: positiveInteger('max_tokens').nullish(),
  max_completion_tokens: positiveInteger('max_completion_tokens').nullish(),
  n: choices('n'),
  // Not a member of chat completions, but servers that share code with legacy completions follow it.
  best_of: choices('best_of'),
  top_p: optionalNumber('top_p'),
  frequency_penalty: optionalNumber('frequency_penalty'),
  presence_penalty: optionalNumber('presence_penalty'),
  stop: z.union([z.string(), z.array(z.string())], 'stop must be a string or an array of strings').nullish(),
  tools: z.array(z.unknown(), 'tools must be an array').nullish(),
  tool_choice: z
    .union([z.string(), z.looseObject({})], 'tool_choice must be a string or an object')
    .nullish(),
  response_format: responseFormat.nullish(),
  user: z.string('user must be a string').nullish(),
  // Seeds can be 64-bit integers, which JavaScript cannot represent: they are sent on as they were written.
  seed: z
    .number('seed must be an integer')
    .refine(Number.isInteger, 'seed must be an integer')
    .meta({ multipleOf: 1 })
    .nullish(),
  logprobs: z.union([z.boolean(), z.looseObject({})], 'logprobs must be a boolean or an object').nullish(),
})

export const completionRequest = z.looseObject({
  ...chatBilled,
  model,
  stream: optionalBoolean('stream'),
  stream_options: streamOptions.nullish(),
  max_tokens: positiveInteger('max_tokens').nullish(),
  max_completion_tokens: positiveInteger('max_completion_tokens').nullish(),
  n: choices('n'),
  best_of: choices('best_of'),
})

/**
 * Message threads store a conversation at the provider under ids that our provider credential would open to every
 * organization. After this error, official tool runners continue without threads.
 */
export const THREAD_DETAILS = { error_code: 'thread_unsupported_request', unsupported: ['thread'] }
const thread = z.null('thread is not supported: send the whole conversation').optional()

export const messagesRequest = z.looseObject({
  ...billed,
  thread,
  model,
  max_tokens: z
    .int('max_tokens is required and must be an integer')
    .positive('max_tokens must be a positive integer'),
  stream: optionalBoolean('stream'),
  tools: z.array(z.unknown(), 'tools must be an array').nullish(),
  tool_choice: z.looseObject({}, 'tool_choice must be an object').nullish(),
})

export const countTokensRequest = z.looseObject({
  model,
  thread,
  max_tokens: positiveInteger('max_tokens').nullish(),
  stream: z.literal(false, 'stream is not supported on count_tokens: omit it or send false').nullish(),
  tools: z.array(z.unknown(), 'tools must be an array').nullish(),
})
