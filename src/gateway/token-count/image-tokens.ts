import type { ImageSize } from './image-size.ts'

/** Tokens of an image. @param size null for unknown, which counts as the largest image. */
export type ImageRule = (size: ImageSize | null) => number

/** Tiles of 512 pixels, after the image was shrunk to 2,048 by 2,048 and its short side to 768. */
const tiles =
  (base: number, perTile: number): ImageRule =>
  (size) => {
    if (size === null) return base + 8 * perTile
    const { width, height } = shrunk(shrunk(size, 2_048, Math.max), 768, Math.min)
    return base + Math.ceil(width / 512) * Math.ceil(height / 512) * perTile
  }

function shrunk(size: ImageSize, limit: number, side: (...sides: number[]) => number): ImageSize {
  const scale = Math.min(1, limit / side(size.width, size.height))
  // Rounded up, because vendors do not publish how they round.
  return { width: Math.ceil(size.width * scale), height: Math.ceil(size.height * scale) }
}

/** Square patches up to a budget, to which larger images are shrunk. */
const patches =
  (side: number, budget: number, multiplier: number, base = 0): ImageRule =>
  (size) => {
    const count = size ? Math.ceil(size.width / side) * Math.ceil(size.height / side) : budget
    return base + Math.ceil(Math.min(count, budget) * multiplier)
  }

/** Each crop is 258 tokens; newer models spend a fixed 1,120. https://ai.google.dev/gemini-api/docs/media-resolution */
const crops: ImageRule = (size) => {
  if (size === null) return 5_000
  const unit = Math.max(1, Math.floor(Math.min(size.width, size.height) / 1.5))
  return Math.max(1_120, Math.min(5_000, 258 * Math.ceil(size.width / unit) * Math.ceil(size.height / unit)))
}

/**
 * The first rule that matches a model's id. OpenAI's are from its guide, even where callers measured less. Requests
 * have no `detail`, and `auto` may mean `original` on models that have it (10,000 patches).
 * https://platform.openai.com/docs/guides/images-vision#calculating-costs https://community.openai.com/t/1377015
 * (multipliers as charged)
 */
const RULES: ReadonlyArray<[RegExp, ImageRule]> = [
  [/gpt-4o-mini/, tiles(2_833, 5_667)],
  [/gpt-4\.1-mini/, patches(32, 1_536, 1.62)],
  [/gpt-4\.1-nano|gpt-5-nano/, patches(32, 1_536, 2.46)],
  [/o4-mini/, patches(32, 1_536, 1.72)],
  [/gpt-5-mini/, patches(32, 1_536, 1.62)],
  [/gpt-5[.-]\d.*-nano/, patches(32, 10_000, 2.46)],
  [/gpt-5[.-]\d.*-mini/, patches(32, 10_000, 1.62)],
  [/gpt-5\.[2-9]|gpt-[6-9]/, patches(32, 10_000, 1.2)],
  [/gpt-4|chatgpt-4o/, tiles(85, 170)],
  [/gpt-5/, tiles(70, 140)],
  [/(^|\/)o\d/, tiles(75, 150)],
  [/gemini|gemma/, crops],
  // https://docs.claude.com/en/docs/build-with-claude/vision: patches of 28 pixels, at most 4,784 on newer models.
  [/claude/, patches(28, 4_784, 1, 8)],
  // Patches of 28 pixels up to 16,384 of them: https://github.com/QwenLM/Qwen2.5-VL
  [/qwen|qvq/, patches(28, 16_384, 1, 8)],
]

const OTHER_MOST = 6_500

/** Patches of 16 pixels and a mark at the end of each row: more than any other open model spends. */
const OTHER_RULE: ImageRule = (size) => {
  if (size === null) return OTHER_MOST
  const rows = Math.ceil(size.height / 16)
  return Math.min(OTHER_MOST, Math.max(1_120, Math.ceil(size.width / 16) * rows + rows))
}

/** Characters of a name that decide: some of the patterns take squared time on a name that repeats their beginning. */
const LONGEST_NAME = 200

/** @param upstreamModel the provider's name of the model, in any spelling. */
export function imageRuleOf(upstreamModel: string): ImageRule {
  const name = upstreamModel.slice(0, LONGEST_NAME).toLowerCase()
  return RULES.find(([pattern]) => pattern.test(name))?.[1] ?? OTHER_RULE
}
