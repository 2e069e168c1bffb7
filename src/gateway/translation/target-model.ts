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

/** The words of the catalogue that translation reads. */
export type Capability =
  | 'reasoning'
  /**
   * Claude 4.6 and later: the model decides how much it thinks, within an effort, and takes no budget of tokens. It refuses
   * a prefilled answer, and all but the first of them refuse sampling members
   * (https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-7).
   */
  | 'adaptive_thinking'
  | 'json_object'
  | 'json_schema'
  | 'vision'
  /**
   * The model takes tools on chat completions only while it does not reason: OpenAI models from GPT-5.4 on refuse function
   * tools unless `reasoning_effort` is `none`, the later ones even where no effort is sent
   * (https://github.com/openai/openai-openapi/issues/541).
   */
  | 'tools_without_reasoning'

export const can = (target: TargetModel, capability: Capability): boolean =>
  target.capabilities.includes(capability)
