/**
 * The blocks of a model's reasoning, with what its family requires to accept them again. Callers get and return it sealed.
 */
export type ReasoningSecret = Array<{
  /** Empty where the family does not disclose it. */
  text: string
  /** By which the family verifies the block. */
  signature?: string
  /** In place of text and signature. */
  redacted?: string
  /** The family of the signature. */
  origin?: string
}>
