/** Features of models at this upstream. */
export interface ModelTraits {
  /** Chat: `max_completion_tokens`, `reasoning_effort`, and no sampling, as the models that reason. */
  reasoning: boolean
  /** Chat: whether it takes tools while it reasons, or only with `reasoning_effort: none`. */
  toolsWhileReasoning: boolean
  jsonObject: boolean
  /** `response_format` on chat, `output_config.format` on messages. */
  jsonSchema: boolean
  images: boolean
  /** Whether `POST /v1/responses/input_tokens` is there for it. */
  inputTokens: boolean
  /** Messages: which forms of thinking it takes. */
  thinking: 'any' | 'budget' | 'adaptive'
  /** Messages: `one` refuses `temperature` beside `top_p`, `none` refuses both, and `top_k`. */
  sampling: 'free' | 'one' | 'none'
  /** Messages: whether the conversation may end with the assistant. */
  prefill: boolean
  /** The most output tokens that may be requested. */
  maximumOutput: number
}

const usual: ModelTraits = {
  reasoning: false,
  toolsWhileReasoning: true,
  jsonObject: true,
  jsonSchema: true,
  images: true,
  inputTokens: true,
  thinking: 'any',
  sampling: 'free',
  prefill: true,
  maximumOutput: 128_000,
}

/** The features of a model, by its name. The figures of the scripted ones are those of the demo catalogue. */
const byName: [RegExp, Partial<ModelTraits>][] = [
  [/^(o\d|gpt-[5-9])/, { reasoning: true }],
  [/^gpt-(5\.([4-9]|\d\d)|[6-9])/, { toolsWhileReasoning: false }],
  [/^scripted-chat-reasoning/, { reasoning: true, maximumOutput: 16_384 }],
  [
    /^scripted-chat-plain/,
    { jsonObject: false, jsonSchema: false, images: false, inputTokens: false, maximumOutput: 16_384 },
  ],
  [
    /^scripted-messages-thinking/,
    { thinking: 'budget', sampling: 'one', jsonSchema: false, maximumOutput: 32_000 },
  ],
  [
    /^scripted-messages-adaptive/,
    { thinking: 'adaptive', sampling: 'none', prefill: false, maximumOutput: 32_000 },
  ],
]

export function traitsOf(model: unknown): ModelTraits {
  if (typeof model !== 'string') return usual
  const named = byName.filter(([pattern]) => pattern.test(model)).map(([, traits]) => traits)
  return Object.assign({}, usual, ...named)
}
