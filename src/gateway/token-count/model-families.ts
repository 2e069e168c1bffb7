import { KIND, PIECE_KINDS, type PieceKind } from './piece-kinds.ts'
import type { JsonLayout, TextTotals } from './text-counter.ts'

/** How the models of a family count tokens, and how a request is rendered for them. */
export interface ModelFamily {
  /** How they differ from o200k_base; null where it is their own vocabulary. */
  tokenizer: Tokenizer | null
  /** Tokens around a message, its role included. */
  message: number
  /** Tokens of a whole request: the opening of the answer, and the template before the first message. */
  frame: number
  /** Tokens around a tool call, and around a tool's result. */
  toolCall: number
  /** How tools are rendered: as TypeScript, or as JSON in a layout; `frame` counts the tokens of instructions. */
  tools: { layout: 'typescript' | JsonLayout; frame: number }
}

interface Tokenizer {
  /** Tokens for each token of o200k_base, by kind of piece. */
  factors: Record<PieceKind, number>
  /** Whether every digit is a token. */
  singleDigits: boolean
}

/**
 * Factors by which a vocabulary spends more tokens on a kind of text. Each row was fitted to 77 texts (prose in 26
 * languages, code, Markdown, JSON, logs) with the family's own tokenizer, so that none is below its true count:
 * the smallest factors with which all are at least 2 % above.
 */
const factors = (row: readonly number[]): Record<PieceKind, number> =>
  Object.fromEntries(PIECE_KINDS.map((kind, index) => [kind, row[index] ?? 1])) as Record<PieceKind, number>

// biome-ignore format: one row for each vocabulary, in the order of PIECE_KINDS
const FACTORS = {
  cl100k: factors([1.08, 1, 1.02, 0.96, 1.22, 1.72, 2.13, 2.28, 1.69, 4.87, 2.54, 3.28, 4.27, 2.54, 1.45, 1.36, 1.62, 1.91, 5.06]),
  llama3: factors([1.07, 1, 1.02, 0.99, 1.22, 1.69, 1, 1.05, 1.19, 3.79, 1.72, 1.63, 4.27, 1.35, 0.98, 1.01, 1.21, 1.27, 5.06]),
  llama2: factors([1.45, 1, 0.98, 1.69, 1.33, 2.23, 3, 2.37, 1.58, 2.68, 3.08, 3.53, 3.71, 3.04, 1.6, 1.84, 2.99, 1.88, 3.63]),
  mistral: factors([1.51, 1, 0.85, 1.73, 1.45, 2.2, 2.65, 2.43, 1.74, 3.2, 3.07, 3.37, 3.4, 2.91, 1.71, 1.43, 2.04, 1.47, 2.64]),
  tekken: factors([1.12, 1, 1.01, 1.32, 1.33, 1.14, 1, 1.01, 1.18, 1.26, 1.13, 1.09, 1.19, 1.48, 1.14, 1.15, 1.13, 1.91, 4.85]),
  qwen: factors([1.08, 1, 1.04, 0.96, 1.23, 1.61, 1, 2.2, 1.4, 1, 1.79, 3.01, 3.3, 1.55, 0.96, 0.93, 1.23, 1.02, 4.87]),
  deepseek: factors([1.09, 1, 1.05, 1.45, 1.14, 1.8, 1.6, 1.19, 1.17, 1.27, 1.38, 1.88, 1.56, 1.03, 0.88, 0.99, 1.2, 1.09, 2.18]),
  gemini: factors([1.18, 1, 1.01, 2.23, 1.02, 1.42, 1, 1.07, 1.03, 1.07, 1.13, 1.16, 1.2, 0.89, 0.7, 0.93, 1.17, 0.86, 2.07]),
}

/** The largest factor of each kind, for unpublished vocabularies and unknown models. */
const most = (...rows: Record<PieceKind, number>[]): Record<PieceKind, number> =>
  Object.fromEntries(PIECE_KINDS.map((kind) => [kind, Math.max(...rows.map((row) => row[kind]))])) as Record<
    PieceKind,
    number
  >

const CURRENT = most(FACTORS.llama3, FACTORS.tekken, FACTORS.qwen, FACTORS.deepseek, FACTORS.gemini)

/**
 * Claude's vocabularies are not public. Callers who compared it with o200k_base found 1.18 for the older and 1.53 for
 * the newer one on English and code (https://github.com/sammcj/ingest/pull/65), and that 1.15 is too low
 * (https://github.com/caozhiyuan/copilot-api/pull/141).
 */
const claude = (factor: number): Record<PieceKind, number> => {
  const known = Object.fromEntries(PIECE_KINDS.map((kind) => [kind, factor])) as Record<PieceKind, number>
  return most(known, CURRENT)
}

const OPENAI: ModelFamily = {
  tokenizer: null,
  // https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken
  message: 4,
  frame: 3,
  // Channel, recipient and type, as the open models write them: https://cookbook.openai.com/articles/openai-harmony
  toolCall: 14,
  tools: { layout: 'typescript', frame: 0 },
}

const family = (
  rows: Record<PieceKind, number>,
  more: Partial<ModelFamily> = {},
  singleDigits = false,
): ModelFamily => ({
  tokenizer: { factors: rows, singleDigits },
  // `<|start_header_id|>role<|end_header_id|>`, two line breaks and `<|eot_id|>`: none of these families writes more.
  message: 6,
  // The opening of the answer, and the default system prompt in the templates of Llama and Qwen.
  frame: 36,
  toolCall: 20,
  // Qwen's template explains tool calls in 130 tokens: https://huggingface.co/Qwen/Qwen2.5-7B-Instruct
  tools: { layout: 'spaced', frame: 160 },
  ...more,
})

/** The template of models that reason also names the channel for calls. */
const HARMONY_TOOLS = { layout: 'typescript', frame: 16 } as const
const LLAMA_TOOLS = { tools: { layout: 'indented', frame: 160 } } as const
/** https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview#pricing */
const CLAUDE_TOOLS = { tools: { layout: 'spaced', frame: 840 } } as const

/** The first family that matches a model's id; ids of resellers begin with the vendor's name and a slash. */
const FAMILIES: ReadonlyArray<[RegExp, ModelFamily]> = [
  // The template of the open models before the first message: https://huggingface.co/openai/gpt-oss-20b
  [/gpt-oss/, { ...OPENAI, frame: 96, tools: HARMONY_TOOLS }],
  [/gpt-([5-9]|[12]\d)|(^|[/:])o[1-9]|codex/, { ...OPENAI, tools: HARMONY_TOOLS }],
  [/gpt-4o|gpt-4[.-][1-9](?!\d)/, OPENAI],
  [
    /gpt-(4|3\.?5)|davinci|babbage/,
    { ...OPENAI, tokenizer: { factors: FACTORS.cl100k, singleDigits: false } },
  ],
  [/claude-(instant|[23]|(haiku|sonnet|opus)-4(?![.-][7-9]))/, family(claude(1.3), CLAUDE_TOOLS, true)],
  [/claude/, family(claude(1.7), CLAUDE_TOOLS, true)],
  [/llama-?2|codellama|vicuna/, family(FACTORS.llama2, {}, true)],
  [/llama/, family(FACTORS.llama3, LLAMA_TOOLS)],
  [
    /mi[sx]tral-(7b|8x7b|8x22b|tiny|medium-2312)|open-mi[sx]tral-(7b|8x)|mistral-(large|medium|small)-2[34]\d\d|codestral-22b/,
    family(FACTORS.mistral, {}, true),
  ],
  [/mi[sx]tral|codestral|devstral|magistral|pixtral|voxtral/, family(FACTORS.tekken, {}, true)],
  [/qwen|qwq|qvq/, family(FACTORS.qwen, {}, true)],
  [/deepseek/, family(FACTORS.deepseek)],
  [/gemini|gemma/, family(FACTORS.gemini, {}, true)],
]

const OTHER = family(CURRENT, {}, true)

/** @param upstreamModel the provider's name of the model, in any spelling; unknown ones are counted highest. */
export function familyOf(upstreamModel: string): ModelFamily {
  const name = upstreamModel.toLowerCase()
  return FAMILIES.find(([pattern]) => pattern.test(name))?.[1] ?? OTHER
}

/** @returns the tokens that a family spends on texts, rounded up. */
export function tokensOf({ tokenizer }: ModelFamily, totals: TextTotals): number {
  let tokens = totals.more
  for (const [index, kind] of PIECE_KINDS.entries()) {
    const counted = totals.tokens[index] as number
    if (tokenizer?.singleDigits && index === KIND.digits) tokens += totals.digits
    else tokens += counted * (tokenizer?.factors[kind] ?? 1)
  }
  return Math.ceil(tokens)
}
