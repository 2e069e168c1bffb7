import { scanJsonInSlices } from '../../lib/json-scan.ts'
import type { JsonKind, JsonPath, JsonVisitor } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { documentTokens, isPdf } from './document-tokens.ts'
import { imageSize } from './image-size.ts'
import { type ImageRule, imageRuleOf } from './image-tokens.ts'
import { familyOf, type ModelFamily } from './model-families.ts'
import { TextTokens } from './text-tokens.ts'

/** Instructions about the output format, besides the schema; `{"type": "function", ...}` around a tool; a tool's choice. */
const FORMAT_TOKENS = 64
const DEFINITION_TOKENS = 12
const CHOICE_TOKENS = 8
/** Members of messages and blocks that models do not get, or that stand for a few tokens. */
const UNCOUNTED = new Set(['id', 'type', 'role', 'tool_use_id', 'media_type', 'thinking', 'signature', 'ttl'])

/**
 * Estimates the input tokens of a messages request for a model of chat completions, in one pass and in slices. Texts count
 * by `TextTokens`, images by their size, files by their pages; what has no readable size counts as the largest.
 *
 * @param body a messages request that was checked before: JSON in valid UTF-8. No tree of it is built.
 * @param upstreamModel the provider's name of the model, which determines its family
 * @throws JsonSyntaxError if the body is not JSON
 */
export function* estimateInputTokens(body: Uint8Array, upstreamModel: string): Slices<number> {
  const request = new RequestTokens(body, upstreamModel)
  yield* scanJsonInSlices(body, request)
  return yield* request.total()
}

/** Whether a text begins as base64 does. A text without a space is taken for it. */
const isEncoded = (contents: Uint8Array): boolean =>
  contents.length >= HEAD_BYTES && /^[A-Za-z0-9+/]+$/.test(latin1.decode(contents.subarray(0, HEAD_BYTES)))
const HEAD_BYTES = 64
const latin1 = new TextDecoder('latin1')

class RequestTokens implements JsonVisitor {
  readonly valueDepth = 5
  readonly #body: Uint8Array
  readonly #family: ModelFamily
  readonly #image: ImageRule
  readonly #texts: TextTokens
  /** Tokens besides those of texts. */
  #more: number
  #hasTools = false
  readonly #files: Uint8Array[] = []

  constructor(body: Uint8Array, upstreamModel: string) {
    this.#body = body
    this.#family = familyOf(upstreamModel)
    this.#image = imageRuleOf(upstreamModel)
    this.#texts = new TextTokens(body)
    this.#more = this.#family.frame
  }

  /** Called by the scanner. */
  string(path: JsonPath, start: number, end: number, name: string): void {
    const [top] = path
    if ((top !== 'messages' && top !== 'system') || path[4] === 'input' || UNCOUNTED.has(name)) return
    const isSource = path[path.length - 2] === 'source'
    if (name === 'data') {
      // Reasoning that only its own provider can read has no source.
      if (isSource) this.#data(start, end)
    } else if (name === 'url' && isSource) this.#more += this.#image(null)
    else this.#texts.add(start, end)
  }

  /** Called by the scanner: messages, and what models get as JSON. */
  value(path: JsonPath, kind: JsonKind, start: number, end: number): void {
    const [top, second] = path
    const isTop = path.length === 1
    const isEntry = path.length === 2
    if ((top === 'messages' && isEntry) || (top === 'system' && isTop)) this.#more += this.#family.message
    else if (path.length === 5 && top === 'messages' && path[4] === 'input') {
      this.#more += this.#family.message
      this.#texts.add(start, end)
    } else if (top === 'tools' && isEntry) {
      this.#hasTools = true
      this.#more += DEFINITION_TOKENS
      this.#texts.add(start, end)
    } else if (kind !== 'object') return
    else if (top === 'tool_choice' && isTop) this.#more += CHOICE_TOKENS
    else if (
      (top === 'output_config' && second === 'format' && isEntry) ||
      (top === 'output_format' && isTop)
    ) {
      this.#more += FORMAT_TOKENS
      this.#texts.add(start, end)
    }
  }

  *total(): Slices<number> {
    for (const file of this.#files) this.#more += yield* documentTokens(file, this.#image)
    const tools = this.#hasTools ? this.#family.tools : 0
    return (yield* this.#texts.of(this.#family)) + this.#more + tools
  }

  /** The content of a source: a text, or a file in base64. Files that are no PDF are images. */
  #data(start: number, end: number): void {
    const contents = this.#body.subarray(start, end)
    if (!isEncoded(contents)) this.#texts.add(start, end)
    else if (isPdf(contents)) this.#files.push(contents)
    else this.#more += this.#image(imageSize(contents))
  }
}
