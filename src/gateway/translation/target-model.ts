/** What translation has to know of the model a request goes to. */
export interface TargetModel {
  upstreamModel: string
  /** Tokens. */
  maxOutputTokens: number
  /** Words of the catalogue. A word that is absent means that the model cannot. */
  capabilities: readonly string[]
  /** The family whose signatures of reasoning it knows; reasoning of all others means nothing to it. */
  origin?: string
}

/** The words that translation reads, and what each of them promises. */
export const CAPABILITIES = {
  reasoning: 'Thinks before it answers, and can be told how much.',
  /**
   * Claude 4.6 and later. Models that think so refuse a prefilled answer, and all but the first of them refuse
   * sampling members (https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-7).
   */
  adaptive_thinking: 'Decides itself how much it thinks, within an effort; takes no budget of tokens.',
  json_object: 'Answers with a JSON object when it is told to.',
  json_schema: 'Answers with JSON that fits a schema.',
  vision: 'Sees images.',
  /**
   * OpenAI models from GPT-5.4 on refuse function tools on chat completions unless `reasoning_effort` is `none`, the
   * later ones even where no effort is sent (https://github.com/openai/openai-openapi/issues/541).
   */
  tools_without_reasoning: 'Takes tools on chat completions only while it does not reason.',
} as const

export type Capability = keyof typeof CAPABILITIES

export const can = (target: TargetModel, capability: Capability): boolean =>
  target.capabilities.includes(capability)
