import { createHash } from 'node:crypto'
import {
  countCharacters,
  isRecord,
  type JsonRecord,
  tokensOfCharacters,
  toList,
  toRecord,
} from './json-value.ts'

const maximumEntries = 20_000
const openAiMinimumTokens = 1024
const openAiStep = 128
const seenPrefixes = new Set<string>()

function remember(prefix: string): void {
  if (seenPrefixes.size >= maximumEntries) {
    const [oldest] = seenPrefixes
    if (oldest !== undefined) seenPrefixes.delete(oldest)
  }
  seenPrefixes.add(prefix)
}

/**
 * Cached prompt tokens as OpenAI reports them: automatic, for the longest prefix of whole messages seen before, from
 * 1024 tokens on and in steps of 128. https://platform.openai.com/docs/guides/prompt-caching
 */
export function cachedChatTokens(
  model: string,
  tools: unknown,
  messages: unknown[],
  promptTokens: number,
): number {
  if (promptTokens < openAiMinimumTokens) return 0
  const hash = createHash('sha256').update(`chat\0${model}\0${JSON.stringify(tools ?? null)}`)
  let characters = countCharacters(tools)
  let cached = 0
  for (const message of messages) {
    hash.update(JSON.stringify(message))
    characters += countCharacters(message)
    const prefix = hash.copy().digest('base64')
    if (seenPrefixes.has(prefix)) cached = tokensOfCharacters(characters)
    remember(prefix)
  }
  return cached < openAiMinimumTokens ? 0 : Math.floor(cached / openAiStep) * openAiStep
}

export interface MessagesInput {
  /** Tokens after the last cache marker: Anthropic's `input_tokens` exclude what was read or written. */
  input: number
  created5m: number
  created1h: number
  read: number
}

interface PromptBlock {
  /** The block without its marker, which may move between requests. */
  content: JsonRecord
  marker: unknown
  /** `tool`, `system` or the message's role. */
  context: string
}

/**
 * Input usage as Anthropic reports it. Tools, system and messages are one sequence of blocks. Up to the last
 * `cache_control` marker, the longest prefix seen before counts as read and the rest as written. Each written stretch
 * has the ttl of the marker at its end. Unlike at the vendor there is no minimal length, so short prompts are cached
 * too.
 * https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
 */
export function measureMessagesInput(body: JsonRecord, hasMarkers: boolean): MessagesInput {
  const blocks = promptBlocks(body)
  const characters = blocks.reduce((sum, { content }) => sum + countCharacters(content), 0)
  const total = tokensOfCharacters(characters)
  const result: MessagesInput = { input: total, created5m: 0, created1h: 0, read: 0 }
  return hasMarkers ? measureMarked(body, blocks, result) : result
}

function measureMarked(body: JsonRecord, blocks: PromptBlock[], unmarked: MessagesInput): MessagesInput {
  const result = { ...unmarked }
  const hash = createHash('sha256').update(`messages\0${String(body.model)}`)
  let characters = 0
  let counted = 0
  blocks.forEach(({ content, marker, context }, index) => {
    // A marker at the top level applies to the last block.
    const closing = marker ?? (index === blocks.length - 1 ? body.cache_control : undefined)
    hash.update(context + JSON.stringify(content))
    characters += countCharacters(content)
    const prefix = hash.copy().digest('base64')
    const tokens = tokensOfCharacters(characters)
    if (seenPrefixes.has(prefix)) {
      Object.assign(result, { read: tokens, created5m: 0, created1h: 0 })
      counted = tokens
    } else if (isRecord(closing)) {
      remember(prefix)
      if (closing.ttl === '1h') result.created1h += tokens - counted
      else result.created5m += tokens - counted
      counted = tokens
    }
  })
  return { ...result, input: unmarked.input - counted }
}

function promptBlocks(body: JsonRecord): PromptBlock[] {
  const blocks = contentBlocks(body.tools, 'tool')
  blocks.push(...contentBlocks(body.system, 'system'))
  for (const message of toList(body.messages)) {
    const { role, content } = toRecord(message)
    blocks.push(...contentBlocks(content, String(role)))
  }
  return blocks
}

function contentBlocks(value: unknown, context: string): PromptBlock[] {
  if (typeof value === 'string')
    return [{ content: { type: 'text', text: value }, marker: undefined, context }]
  return toList(value).map((block) => {
    const { cache_control: marker, ...content } = toRecord(block)
    return { content, marker, context }
  })
}
