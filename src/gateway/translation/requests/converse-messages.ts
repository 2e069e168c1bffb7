import { invalidRequest } from '../../../lib/api-error.ts'
import { shortId } from '../../protocols/chat-message-rules.ts'
import { entryOf, type Json, present } from '../../protocols/json.ts'
import type { TargetModel } from '../target-model.ts'
import type {
  CanonicalPart,
  CanonicalTurn,
  MediaPart,
  ReasoningPart,
  ResultPart,
  TextPart,
} from './canonical-request.ts'
import { CanonicalTurns } from './canonical-turns.ts'
import { makerOf, takesCachePoints } from './converse-models.ts'

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ImageBlock.html */
const IMAGE_FORMATS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpeg',
  'image/jpg': 'jpeg',
  'image/gif': 'gif',
  'image/webp': 'webp',
}
/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html */
const DOCUMENT_FORMATS: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'text/csv': 'csv',
  'application/msword': 'doc',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'text/html': 'html',
  'text/markdown': 'md',
}
/** Other formats of plain text. */
const PLAIN_TEXT = /^(text\/|application\/(json|xml)$)/
/** A message with a document must have a text as well. */
const ATTACHED = '(A document is attached.)'
/** A result must have content. */
const NOTHING = '(The tool returned nothing.)'
/** The most cache points of a request. */
const MOST_CACHE_POINTS = 4

const isBlank = (text: string): boolean => text.trim() === ''
const isWritten = (part: CanonicalPart): boolean => part.kind !== 'text' || !isBlank(part.text)

/** `system` and `messages` of a Converse request. @throws ApiError invalid_request for media without an equivalent. */
export function conversationOf(
  system: readonly TextPart[],
  turns: readonly CanonicalTurn[],
  target: TargetModel,
): { system: Json[]; messages: Json[] } {
  const writer = new MessageWriter(target)
  const written = {
    system: system.filter(isWritten).flatMap((part) => writer.cached([{ text: part.text }], part)),
    messages: withoutBlanks(turns).map((turn) => writer.message(turn)),
  }
  limitCachePoints([written.system, ...written.messages.map(({ content }) => content as Json[])])
  return written
}

/** Blank texts are refused. Turns without them alternate again. */
function withoutBlanks(turns: readonly CanonicalTurn[]): CanonicalTurn[] {
  const kept = new CanonicalTurns()
  for (const { role, parts } of turns) kept.add(role, parts.filter(isWritten))
  return kept.finish('messages: at least one message must have text that is not blank.').turns
}

class MessageWriter {
  readonly #takesCachePoints: boolean
  readonly #takesShortIds: boolean
  #documents = 0

  constructor({ upstreamModel }: TargetModel) {
    const maker = makerOf(upstreamModel)
    this.#takesCachePoints = takesCachePoints(maker)
    // https://docs.mistral.ai/capabilities/function_calling: nine letters and digits.
    this.#takesShortIds = maker === 'mistral'
  }

  message({ role, parts }: CanonicalTurn): Json {
    const content = parts.flatMap((part) => this.#block(part))
    const isSilent = !content.some(({ text }) => text !== undefined)
    if (isSilent && content.some(({ document }) => document !== undefined)) content.push({ text: ATTACHED })
    return { role, content }
  }

  /** A cache point follows the block that it marks the end of. */
  cached(blocks: Json[], { cache }: Pick<TextPart, 'cache'>): Json[] {
    return cache && this.#takesCachePoints ? [...blocks, CACHE_POINT] : blocks
  }

  #block(part: CanonicalPart): Json[] {
    switch (part.kind) {
      case 'text':
        return this.cached([{ text: part.text }], part)
      case 'call': {
        const { name, input } = part
        return this.cached([{ toolUse: { toolUseId: this.#id(part.id), name, input } }], part)
      }
      case 'result':
        return [{ toolResult: this.#result(part) }]
      case 'reasoning':
        return [reasoningBlock(part)]
      default:
        return this.cached([this.#media(part)], part)
    }
  }

  #id(id: string): string {
    return this.#takesShortIds ? shortId(id) : id
  }

  #result({ id, content, isError }: ResultPart): Json {
    const blocks = content
      .filter(isWritten)
      .map((part) => (part.kind === 'text' ? { text: part.text } : this.#media(part)))
    return present({
      toolUseId: this.#id(id),
      content: blocks.length === 0 ? [{ text: NOTHING }] : blocks,
      status: isError ? 'error' : 'success',
    })
  }

  #media({ kind, mediaType, data }: MediaPart): Json {
    const type = mediaType.toLowerCase()
    if (kind === 'image') {
      const format = entryOf(IMAGE_FORMATS, type)
      if (format) return { image: { format, source: { bytes: data } } }
      throw invalidRequest('Images must be PNG, JPEG, GIF or WebP for this model.')
    }
    if (kind === 'audio') throw invalidRequest('Audio is not supported by this model.')
    const format = entryOf(DOCUMENT_FORMATS, type) ?? (PLAIN_TEXT.test(type) ? 'txt' : undefined)
    if (!format) {
      throw invalidRequest(`Documents of type ${type.slice(0, 80)} are not supported by this model.`)
    }
    // A name reaches the model as instructions would, so that the caller's is not sent.
    return { document: { format, name: `document-${++this.#documents}`, source: { bytes: data } } }
  }
}

/** Nova keeps entries for five minutes, and takes no other lifetime. */
const CACHE_POINT: Json = { cachePoint: { type: 'default' } }

const reasoningBlock = ({ text, signature, redacted }: ReasoningPart): Json => ({
  reasoningContent:
    redacted === null ? { reasoningText: present({ text, signature }) } : { redactedContent: redacted },
})

/** Keeps the last cache points of a request: they cover the longest part of the prompt. */
function limitCachePoints(lists: readonly Json[][]): void {
  const isPoint = (block: Json): boolean => block === CACHE_POINT
  let surplus = lists.reduce((sum, list) => sum + list.filter(isPoint).length, 0) - MOST_CACHE_POINTS
  for (const list of lists) {
    if (surplus <= 0) return
    const kept = list.filter((block) => !isPoint(block) || --surplus < 0)
    list.length = 0
    for (const block of kept) list.push(block)
  }
}
