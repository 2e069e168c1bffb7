import { BoundedMap } from '../../lib/bounded-map.ts'

/**
 * Token counts of a family of models: its factor relative to the vocabulary o200k, and the overhead around the texts of a
 * request.
 */
export interface ModelFamily {
  /** Tokens for each token of o200k: of ASCII, and of all other text. */
  ascii: number
  other: number
  /** Bytes of text for one token where only their number is known: low, because an estimate must not fall below the usage. */
  bytesPerToken: number
  /** Tokens around a message, its role included, and around a tool call with its result. */
  message: number
  /** Tokens of a whole request: the opening of the answer, and the template before the first message. */
  frame: number
  /** Tokens of the instructions of a request with tools. */
  tools: number
}

/** https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken */
const OPENAI: ModelFamily = { ascii: 1, other: 1, bytesPerToken: 3, message: 4, frame: 3, tools: 16 }
/**
 * The factors are the smallest that leave none of 19 texts in ASCII more than 6 % below its true count. For other
 * scripts they are those of the median, because vocabularies differ by half there. Templates of Llama and Qwen are the
 * longest of their kind.
 */
const OPEN: ModelFamily = { ascii: 1.1, other: 1.1, bytesPerToken: 3, message: 6, frame: 36, tools: 160 }
const OLD_OPEN: ModelFamily = { ...OPEN, ascii: 1.25, other: 2, bytesPerToken: 2.5 }
/**
 * Claude's vocabularies are not public. Comparisons with o200k found 1.18 for the older and 1.53 for the newer one on
 * English and code (https://github.com/sammcj/ingest/pull/65). Another one found 1.15 too low
 * (https://github.com/caozhiyuan/copilot-api/pull/141). Tools:
 * https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview#pricing
 */
const CLAUDE: ModelFamily = { ...OPEN, ascii: 1.65, other: 1.65, bytesPerToken: 2, tools: 840 }
const OLD_CLAUDE: ModelFamily = { ...CLAUDE, ascii: 1.25, other: 1.4, bytesPerToken: 2.5 }

/** The first family that matches a model's id; ids of resellers begin with the vendor's name and a slash. */
const FAMILIES: ReadonlyArray<[RegExp, ModelFamily]> = [
  // The template of the open models before the first message: https://huggingface.co/openai/gpt-oss-20b
  [/gpt-oss/, { ...OPENAI, frame: 96 }],
  [/gpt-([5-9]|[12]\d)|(^|[/:])o[1-9]|codex|gpt-4o|gpt-4[.-][1-9](?!\d)/, OPENAI],
  [/gpt-(4|3\.?5)|davinci|babbage/, { ...OPENAI, ascii: 1.02, other: 1.9 }],
  [/claude-(instant|[23]|(haiku|sonnet|opus)-4(?![.-][7-9]))/, OLD_CLAUDE],
  [/claude/, CLAUDE],
  [/llama-?2|codellama|vicuna/, OLD_OPEN],
  [
    /mi[sx]tral-(7b|8x7b|8x22b|tiny|medium-2312)|open-mi[sx]tral-(7b|8x)|mistral-(large|medium|small)-2[34]\d\d|codestral-22b/,
    OLD_OPEN,
  ],
]

const MOST_NAMES = 1_000
const known = new BoundedMap<string, ModelFamily>(MOST_NAMES)

/** @param upstreamModel the provider's name of the model, in any spelling; unknown ones count as open models do. */
export function familyOf(upstreamModel: string): ModelFamily {
  const found = known.get(upstreamModel)
  if (found) return found
  const name = upstreamModel.toLowerCase()
  const family = FAMILIES.find(([pattern]) => pattern.test(name))?.[1] ?? OPEN
  known.set(upstreamModel, family)
  return family
}
