import { scanJson } from '../../lib/json-scan.ts'
import { decodeString } from '../../lib/json-string.ts'
import type { JsonKind, JsonPath } from '../../lib/json-visitor.ts'
import { type Json, objectOf } from '../translation/json.ts'
import { isDropped } from '../translation/requests/member-rules.ts'
import { MESSAGES_BLOCKS } from '../translation/requests/messages-members.ts'
import { documentTokens } from './document-tokens.ts'
import { imageSize } from './image-size.ts'
import { type ImageRule, imageRuleOf } from './image-tokens.ts'
import { eachElement, type JsonMembers, type JsonRange, membersOf, shortText } from './json-members.ts'
import { familyOf, type ModelFamily, tokensOf } from './model-families.ts'
import { type JsonLayout, TextCounter } from './text-counter.ts'
import { memberCount, TOOLS_FRAME, toolText } from './tool-text.ts'

/** Two adjacent texts may take one token more together than apart; rounded up. */
const JOIN_TOKENS = 2
/** Instructions about the output format, besides the schema. */
const FORMAT_TOKENS = 64
/** The name of a tool that must be called is repeated. */
const CHOICE_TOKENS = 8
/** Charges for tools beyond their text, as measured by callers: https://github.com/hmarr/openai-chat-tokens */
const TOOLS_TOKENS = 4
const MEMBER_TOKENS = 2
/** `{"type": "function", "function": ...}` around a definition. */
const DEFINITION_TOKENS = 12
/** Definitions above these sizes, alone or in sum, are counted as JSON text without a tree of them. */
const LARGEST_TOOL_BYTES = 256 * 1024
const MOST_TREE_BYTES = 4 * 1024 * 1024
/** A schema becomes up to six times as long in TypeScript (`1e20` in a list of examples). */
const LONGEST_TEXT_FACTOR = 8
const SHORTEST_TEXT = 1_024
/**
 * Limit of blocks and tools that are read. No vendor takes more messages (https://docs.claude.com/en/api/messages).
 * Beyond it every byte counts as a token.
 */
const MOST_PARTS = 100_000
/**
 * Limit of their bytes. Nested blocks are read once more for each level: the limit allows the largest body twice, as
 * for one file in a tool's result.
 */
const MOST_PART_BYTES = 128 * 1024 * 1024
/** Nesting of blocks: results and documents hold blocks. Valid requests are not deeper. */
const DEEPEST_BLOCK = 4

/**
 * Counts the input tokens that a chat completions model is charged for a messages request. OpenAI's models are counted
 * with their own vocabulary, others by a factor for each kind of text, rounded up. An image without a readable size,
 * and a file without a readable page count, count as the largest.
 *
 * @param body a messages request that was checked before: JSON in valid UTF-8. No tree of it is built.
 * @param options.upstreamModel the provider's name of the model, which determines its family
 * @returns tokens; not below what is charged, as far as the vendor's rules are known
 * @throws JsonSyntaxError if the body is not JSON
 */
export function countInputTokens(body: Uint8Array, { upstreamModel }: { upstreamModel: string }): number {
  return new RequestCounter(body, upstreamModel).count()
}

class RequestCounter {
  readonly valueDepth = 4
  readonly #body: Uint8Array
  readonly #family: ModelFamily
  readonly #image: ImageRule
  readonly #layout: JsonLayout
  readonly #texts = new TextCounter()
  /** Tokens besides those of texts. */
  #more: number
  #tools = 0
  /** Of definitions that were read as trees. */
  #treeBytes = 0
  /** Blocks and tools so far, and their bytes. */
  #partsRead = 0
  #partBytesRead = 0
  /** Parts of the current message, without tool results. */
  #parts = 0
  #results = 0

  constructor(body: Uint8Array, upstreamModel: string) {
    this.#body = body
    this.#family = familyOf(upstreamModel)
    this.#image = imageRuleOf(upstreamModel)
    this.#layout = this.#family.tokenizer === null ? 'compact' : 'spaced'
    this.#more = this.#family.frame
  }

  count(): number {
    scanJson(this.#body, this)
    if (this.#tools > 0) {
      this.#more += this.#family.tools.frame + TOOLS_TOKENS
      if (this.#family.tools.layout === 'typescript') this.#plainText(TOOLS_FRAME)
    }
    return tokensOf(this.#family, this.#texts.totals) + this.#more
  }

  /** Called by the scanner. */
  value(path: JsonPath, kind: JsonKind, start: number, end: number): void {
    const range = { kind, start, end }
    const [top, second, third] = path
    if (top === 'messages') this.#inMessages(path, range)
    else if (top === 'system') this.#inSystem(path, range)
    else if (top === 'tools' && typeof second === 'number' && path.length === 2) this.#tool(range)
    else if (top === 'tool_choice' && path.length === 1 && kind === 'object') this.#more += CHOICE_TOKENS
    else if (top === 'output_format' && path.length === 1) this.#format(range)
    else if (top === 'output_config' && second === 'format' && third === undefined) this.#format(range)
  }

  #inMessages(path: JsonPath, range: JsonRange): void {
    if (path.length === 4 && path[2] === 'content') this.#block(range, 0)
    else if (path.length === 3 && path[2] === 'content' && range.kind === 'string') this.#part(range)
    else if (path.length === 2) {
      // Results become messages of their own; a message of results alone is not sent.
      if (this.#parts > 0 || this.#results === 0) this.#more += this.#family.message
      this.#parts = 0
      this.#results = 0
    }
  }

  #inSystem(path: JsonPath, range: JsonRange): void {
    if (path.length === 1 && range.end - range.start > 2) this.#more += this.#family.message
    if (path.length === 1 && range.kind === 'string') this.#part(range)
    else if (path.length === 2 && range.kind === 'object') this.#block(range, 0)
    if (path.length === 1) this.#parts = 0
  }

  /** A text of the current message. */
  #part(range: JsonRange | undefined): void {
    if (this.#parts++ > 0) this.#more += JOIN_TOKENS
    this.#text(range)
  }

  #block(range: JsonRange, depth: number): void {
    if (range.kind !== 'object' || depth > DEEPEST_BLOCK || this.#isBeyond(range)) return
    const members = membersOf(this.#body, range)
    const type = shortText(this.#body, members.get('type'))
    if (isDropped(MESSAGES_BLOCKS, type)) return
    if (type === 'tool_use') this.#toolUse(members)
    else if (type === 'tool_result') this.#toolResult(members, depth)
    else if (type === 'image') this.#imageBlock(members)
    else if (type === 'document') this.#document(members, depth)
    else this.#textBlock(members, depth)
  }

  /** Counts a part against the limits. @returns true for a part beyond them, whose bytes count as tokens. */
  #isBeyond({ start, end }: JsonRange): boolean {
    this.#partsRead++
    this.#partBytesRead += end - start
    if (this.#partsRead <= MOST_PARTS && this.#partBytesRead <= MOST_PART_BYTES) return false
    this.#more += end - start
    return true
  }

  /** Blocks that become text: texts, summaries, search results. */
  #textBlock(members: JsonMembers, depth: number): void {
    for (const name of ['text', 'title', 'source', 'tool_name'] as const) {
      if (members.has(name)) this.#part(members.get(name))
    }
    this.#content(members.get('content'), depth)
  }

  /** A member that holds a text or blocks. */
  #content(range: JsonRange | undefined, depth: number): void {
    if (range?.kind === 'string') this.#part(range)
    else if (range?.kind === 'array') {
      eachElement(this.#body, range, (element) => this.#block(element, depth + 1))
    }
  }

  #toolUse(members: JsonMembers): void {
    this.#parts++
    this.#more += this.#family.toolCall
    this.#text(members.get('name'))
    const input = members.get('input')
    if (input) this.#json(input, this.#layout)
  }

  #toolResult(members: JsonMembers, depth: number): void {
    this.#results++
    this.#more += this.#family.message + this.#family.toolCall
    const before = this.#parts
    this.#content(members.get('content'), depth)
    this.#parts = before
  }

  #imageBlock(members: JsonMembers): void {
    this.#parts++
    const source = members.get('source')
    const data = source && membersOf(this.#body, source).get('data')
    this.#more += this.#image(data?.kind === 'string' ? imageSize(this.#contents(data)) : null)
  }

  #document(members: JsonMembers, depth: number): void {
    this.#part(members.get('title'))
    this.#part(members.get('context'))
    const source = members.get('source')
    if (source?.kind !== 'object') return
    const inner = membersOf(this.#body, source)
    const data = inner.get('data')
    if (shortText(this.#body, inner.get('type')) === 'text') this.#part(data)
    else if (data?.kind === 'string') this.#more += documentTokens(this.#contents(data), this.#image)
    this.#content(inner.get('content'), depth)
  }

  #tool(range: JsonRange): void {
    this.#tools++
    if (this.#isBeyond(range)) return
    const { layout } = this.#family.tools
    if (layout === 'typescript' && this.#typescriptTool(range)) return
    this.#more += DEFINITION_TOKENS
    this.#json(range, layout === 'typescript' ? 'indented' : layout)
  }

  /** @returns false for a definition that is too large to be rendered as a type. */
  #typescriptTool(range: JsonRange): boolean {
    const bytes = range.end - range.start
    if (bytes > LARGEST_TOOL_BYTES || this.#treeBytes + bytes > MOST_TREE_BYTES) return false
    this.#treeBytes += bytes
    const tool = this.#tree(range)
    const text = toolText(tool, LONGEST_TEXT_FACTOR * bytes + SHORTEST_TEXT)
    if (text === null) return false
    this.#plainText(text)
    this.#more += MEMBER_TOKENS * memberCount(objectOf(tool.input_schema))
    return true
  }

  #format(range: JsonRange): void {
    if (range.kind !== 'object') return
    this.#more += FORMAT_TOKENS
    this.#json(range, this.#layout)
  }

  #tree(range: JsonRange): Json {
    return objectOf(JSON.parse(decodeString(this.#body, range.start, range.end, false)))
  }

  #text(range: JsonRange | undefined): void {
    if (range?.kind !== 'string') return
    this.#texts.pushJson(this.#body, range.start + 1, range.end - 1)
    this.#texts.end()
  }

  #json(range: JsonRange, layout: JsonLayout): void {
    this.#texts.pushJsonSource(this.#body, range.start, range.end, layout)
    this.#texts.end()
  }

  #plainText(text: string): void {
    this.#texts.push(text)
    this.#texts.end()
  }

  /** The contents of a string, without its quotes. */
  #contents(range: JsonRange): Uint8Array {
    return this.#body.subarray(range.start + 1, range.end - 1)
  }
}
