/** What translation has to know of the model a request goes to. */
export interface TargetModel {
  upstreamModel: string
  maxOutputTokens: number
  /** Words of the catalogue, such as `reasoning`, `adaptive_thinking` or `json_mode`. */
  capabilities: readonly string[]
}
