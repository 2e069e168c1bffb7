/** Properties that translation needs of the model that a request is sent to. */
export interface TargetModel {
  upstreamModel: string
  /** Tokens. */
  maxOutputTokens: number
  /** Capabilities of the catalogue; the model has no others. */
  capabilities: readonly string[]
  /** Origin of the signed reasoning that it accepts (`signatureOrigin`); reasoning of other origins is dropped. */
  origin?: string
  /** Whether the provider of a generateContent model refuses ids of calls. */
  omitsCallIds?: boolean
  /** Whether readable reasoning is sent back to it, as `reasoning_content` of its messages. */
  takesReasoning?: boolean
  /** Whether its chat completions sign tool calls (`extra_content`), and take the signatures back. */
  signsCalls?: boolean
}

/** The capabilities of the catalogue that translation reads. */
export type Capability =
  | 'reasoning'
  /**
   * Claude 4.6 and later: the model decides how much it thinks, within an effort, and takes no budget of tokens. It
   * refuses a prefilled answer, and all but the first of them refuse sampling members
   * (https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-7).
   */
  | 'adaptive_thinking'
  | 'json_object'
  | 'json_schema'
  | 'vision'
  /**
   * The model takes tools on chat completions only while it does not reason: OpenAI models from GPT-5.4 on refuse
   * function tools unless `reasoning_effort` is `none`, the later ones even where no effort is sent
   * (https://github.com/openai/openai-openapi/issues/541).
   */
  | 'tools_without_reasoning'

export const can = (target: TargetModel, capability: Capability): boolean =>
  target.capabilities.includes(capability)
