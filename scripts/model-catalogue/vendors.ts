/** Vendors by the names that the price list has for them. */
export type Vendor =
  | 'openai'
  | 'anthropic'
  | 'aws'
  | 'google'
  | 'azure'
  | 'mistral'
  | 'groq'
  | 'x-ai'
  | 'deepseek'
  | 'together'
  | 'fireworks'
  | 'openrouter'

/** Prefixes of the inference profiles of Bedrock: where a call may be answered. */
const PROFILE = /^(us|us-gov|eu|apac|jp|au|in|amer|global)\.(?=[a-z0-9-]+\.)/

/** Splits an id of Bedrock into its inference profile, empty for none, and the model. */
export function profileOf(id: string): { profile: string; model: string } {
  const profile = PROFILE.exec(id)?.[1] ?? ''
  return { profile, model: profile === '' ? id : id.slice(profile.length + 1) }
}

/**
 * The name that a model has at its maker, from the id that it has at a vendor: `claude-sonnet-4-5` for
 * `anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-sonnet-4-5@20250929` and `anthropic/claude-sonnet-4.5`.
 */
export function makersName(vendor: Vendor, id: string): string {
  const last = (
    vendor === 'aws' ? id.replace(/^[a-z0-9-]+\./, '') : (id.split('/').at(-1) ?? id)
  ).toLowerCase()
  const name = last
    .replace(/@.*$/, '')
    .replace(/:\d+$/, '')
    .replace(/-v\d+$/, '')
  if (name.startsWith('claude-')) return name.replace(/-\d{8}$/, '').replaceAll('.', '-')
  // Fireworks writes the point of a version as a letter.
  return vendor === 'fireworks' ? name.replace(/(\d)p(\d)/g, '$1.$2') : name
}

/** Who makes a model, for `owned_by`. */
const MAKERS: ReadonlyArray<[name: RegExp, maker: string]> = [
  [/^claude-/, 'anthropic'],
  [/^(gpt-|o\d)/, 'openai'],
  [/^(gemini|gemma)-/, 'google'],
  [/^nova-/, 'amazon'],
  [/^(llama|muse)/, 'meta'],
  [/^(mistral|ministral|magistral|codestral|devstral|pixtral|open-mistral)/, 'mistral'],
  [/^grok-/, 'xai'],
  [/^(deepseek|r1|v3)/, 'deepseek'],
  [/^qwen/, 'qwen'],
  [/^kimi-/, 'moonshotai'],
  [/^glm-/, 'zai'],
  [/^minimax-/, 'minimax'],
  [/^nemotron-/, 'nvidia'],
  [/^phi-/, 'microsoft'],
  [/^palmyra-/, 'writer'],
]

/** @throws for a model of no known maker. */
export function makerOf(vendor: Vendor, id: string): string {
  const name = makersName(vendor, id)
  const found = MAKERS.find(([pattern]) => pattern.test(name))
  if (found === undefined) throw new Error(`no maker of ${vendor} ${id} is known`)
  return found[1]
}
