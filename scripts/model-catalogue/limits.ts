import type { Vendor } from './vendors.ts'

/**
 * The price list has no limits of output. These are the vendors' published ones, by the name of the model at its maker, and
 * the lower one where vendors differ without a line of their own; newer models get their family's last known figure.
 * https://platform.openai.com/docs/models, https://docs.claude.com/en/docs/about-claude/models/overview,
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-cards.html, https://ai.google.dev/gemini-api/docs/models, as
 * the price file of litellm 1.109.1 has them (read 2026-11-29).
 */
const OUTPUT_LIMITS: ReadonlyArray<[name: RegExp, tokens: number, vendors?: readonly Vendor[]]> = [
  [/^gpt-4o/, 16_384],
  [/^gpt-4\.1/, 32_768],
  [/^gpt-5\.3$/, 16_384],
  [/^gpt-oss/, 65_536, ['groq']],
  [/^gpt-oss/, 131_072, ['together']],
  [/^gpt-oss/, 32_768, ['fireworks']],
  [/^gpt-oss/, 16_384],
  [/^gpt-/, 128_000],
  [/^o\d/, 100_000],
  [/^claude-opus-4-[01]$/, 32_000],
  [/^claude-(sonnet-4-[05]|haiku-4-5|opus-4-5)$/, 64_000],
  [/^claude-sonnet-4-6$/, 64_000, ['aws', 'google']],
  [/^claude-/, 128_000],
  [/^gemini-2\.5-|^gemini-3-/, 65_535],
  [/^gemini-4-/, 1_048_576],
  [/^gemini-/, 65_536],
  [/^gemma-/, 8_000],
  [/^nova-2-/, 64_000],
  [/^nova-/, 10_000],
  [/^llama4-/, 8_192],
  [/^llama3-3-/, 4_096],
  [/^(magistral-small-2509)$/, 40_000],
  [/^(devstral-2-123b|mistral-large-3-675b)/, 32_000],
  [/^pixtral-/, 16_384, ['aws']],
  [/^ministral-/, 8_000, ['aws']],
  [/^codestral-/, 128_000],
  [/^(mistral|ministral|magistral|devstral|open-mistral)-/, 262_144],
  [/^grok-/, 1_000_000],
  [/^deepseek-(v4\.1-flash|v4-flash|v4-pro|flash)$/, 393_216],
  [/^(deepseek-)?(r1|v3)/, 8_000],
  [/^(deepseek-v4)/, 131_072],
  [/^qwen3-coder/, 16_000],
  [/^qwen3-/, 8_000],
  [/^qwen3\.8-27b/, 16_384],
  [/^qwen3\./, 65_536],
  [/^kimi-k3/, 131_072],
  [/^kimi-k2\.5$/, 16_000, ['aws']],
  [/^kimi-/, 32_768],
  [/^glm-/, 128_000],
  [/^minimax-m2/, 8_000, ['aws']],
  [/^minimax-m2/, 196_608],
  [/^minimax-m3/, 512_000],
  [/^nemotron-nano-/, 8_000],
  [/^nemotron-/, 32_000],
  [/^muse-/, 131_072],
  [/^phi-4$/, 16_384],
  [/^phi-4-/, 4_096],
  [/^palmyra-/, 8_192],
]

/** @returns tokens. @throws for a model of no family in the table. */
export function outputLimit(vendor: Vendor, name: string): number {
  const found = OUTPUT_LIMITS.find(
    ([pattern, , vendors]) => pattern.test(name) && (vendors?.includes(vendor) ?? true),
  )
  if (found === undefined) throw new Error(`no limit of output for ${vendor} ${name}`)
  return found[1]
}

/** Context windows that the price list lacks, from the same sources. */
const WINDOWS: ReadonlyArray<[name: RegExp, tokens: number]> = [
  [/^gemini-(2\.5-pro|3(\.1)?-pro-preview)$/, 1_048_576],
  [/^mistral-medium-latest$|^mistral-(small|large)-latest$|^magistral-|^ministral-8b-latest$/, 262_144],
  [/^open-mistral-nemo$/, 128_000],
  [/^glm-5\.1$/, 202_752],
]

/** @param listed that of the price list. @returns tokens; undefined where none is known. */
export const contextWindow = (name: string, listed: number | undefined): number | undefined =>
  listed ?? WINDOWS.find(([pattern]) => pattern.test(name))?.[1]
