import { z } from 'zod'

/** What this upstream lets a model do, by the model's name or as a test says (`PUT /control/models/{name}`). */
export const traitsSchema = z.strictObject({
  /** Chat: `max_completion_tokens`, `reasoning_effort`, and no sampling, as the models that reason. */
  reasoning: z.boolean(),
  /** Chat: whether it takes tools while it reasons, or only with `reasoning_effort: none`. */
  toolsWhileReasoning: z.boolean(),
  jsonObject: z.boolean(),
  /** `response_format` on chat, `output_config.format` on messages. */
  jsonSchema: z.boolean(),
  images: z.boolean(),
  /** Whether `POST /v1/responses/input_tokens` is there for it. */
  inputTokens: z.boolean(),
  /** Messages: which forms of thinking it takes. */
  thinking: z.enum(['any', 'budget', 'adaptive', 'none']),
  /** Messages: `one` refuses `temperature` beside `top_p`, `none` refuses both, and `top_k`. */
  sampling: z.enum(['free', 'one', 'none']),
  /** Messages: whether the conversation may end with the assistant. */
  prefill: z.boolean(),
  /** The most output tokens that may be asked for. */
  maximumOutput: z.int().min(1),
  /** Members that the vendor does not know: by default messages refuses them and chat accepts them. */
  unknownMembers: z.enum(['refuse', 'accept', 'vendor']),
  /** `none` answers whatever is sent. */
  checks: z.enum(['vendor', 'none']),
})

export type ModelTraits = z.infer<typeof traitsSchema>
export type SetTraits = { [name in keyof ModelTraits]?: ModelTraits[name] | undefined }

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
  unknownMembers: 'vendor',
  checks: 'vendor',
}

/** What sets a model apart, by its name. The figures of the scripted ones are those of the demo catalogue. */
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

/** The traits of every model: those of its name, and what tests have set for it. */
export class ModelTraitsTable {
  readonly #set = new Map<string, SetTraits>()

  of(model: unknown): ModelTraits {
    if (typeof model !== 'string') return usual
    const named = byName.filter(([pattern]) => pattern.test(model)).map(([, traits]) => traits)
    return Object.assign({}, usual, ...named, this.#set.get(model))
  }

  /** Sets some traits of one model, in place of what was set before. */
  set(model: string, traits: SetTraits): void {
    this.#set.set(model, traits)
  }

  /** Forgets what was set for one model and tells whether there was anything. */
  remove(model: string): boolean {
    return this.#set.delete(model)
  }

  clear(): void {
    this.#set.clear()
  }

  /** What has been set, by model. */
  list(): Record<string, SetTraits> {
    return Object.fromEntries(this.#set)
  }
}
