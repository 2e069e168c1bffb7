/**
 * Reasoning as a model gave it, block by block, with what its own family needs to take it back. Nobody but us reads it:
 * callers carry it sealed.
 */
export type ReasoningSecret = Array<{
  /** Empty where the family keeps its thinking to itself. */
  text: string
  /** Proof of origin of the block. */
  signature?: string
  /** Takes the place of text and signature. */
  redacted?: string
  /** The family whose signature it is. */
  origin?: string
}>
