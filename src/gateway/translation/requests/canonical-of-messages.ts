import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, listOf, objectOf, present, textOf } from '../../protocols/json.ts'
import { ownSignature } from '../marked-signature.ts'
import type { TargetModel } from '../target-model.ts'
import { fileOfData, imageOfUrl } from './canonical-media.ts'
import { MESSAGES_TO_CANONICAL } from './canonical-members.ts'
import type {
  CanonicalPart,
  CanonicalRequest,
  MediaPart,
  ReasoningPart,
  ResultPart,
  TextPart,
} from './canonical-request.ts'
import { canonicalSettings } from './canonical-settings.ts'
import { CanonicalTurns, cacheOf, textParts } from './canonical-turns.ts'
import { isDropped, refuseKind, refuseLostMembers } from './member-rules.ts'
import { blockText, withoutAttribution } from './messages-conversation.ts'
import { MESSAGES_BLOCKS } from './messages-members.ts'
import { chatParallelCalls, chatToolChoice, chatTools } from './messages-tools.ts'
import { responseFormatOfMessages } from './output-format.ts'
import { usableToolName } from './tool-names.ts'

/**
 * A messages request as a canonical request. `MESSAGES_TO_CANONICAL` has the treatment of each member, `MESSAGES_BLOCKS`
 * that of each block.
 * @throws ApiError invalid_request naming the member, block or tool that has no equivalent.
 */
export function canonicalOfMessages(request: Json, target: TargetModel): CanonicalRequest {
  refuseLostMembers(request, MESSAGES_TO_CANONICAL)
  const { thinking, output_config, temperature, top_p, top_k, stream } = request
  const chat = present({
    max_tokens: request.max_tokens,
    stop: request.stop_sequences,
    tools: chatTools(request),
    tool_choice: chatToolChoice(request),
    parallel_tool_calls: chatParallelCalls(request),
    response_format: responseFormatOfMessages(request),
    reasoning_effort: objectOf(output_config).effort,
    ...{ thinking, temperature, top_p, top_k, stream },
  })
  const place = 'output_config.format.schema'
  return { ...conversationOf(request, target), ...canonicalSettings(chat, place) }
}

function conversationOf(request: Json, target: TargetModel): Pick<CanonicalRequest, 'system' | 'turns'> {
  const reader = new MessagesReader(target)
  const given = listOf(request.messages)
  if (given[given.length - 1]?.role === 'assistant') {
    // The vendor's message. Other models begin a new answer, which would not continue the caller's text.
    throw invalidRequest(
      'messages: This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  }
  reader.turns.addSystem(systemTexts(request.system))
  for (const [index, turn] of given.entries()) reader.add(turn, `messages.${index}.content`)
  return reader.turns.finish('messages: the last message must have content.')
}

const blocksIn = (content: unknown): Json[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content)

const systemTexts = (system: unknown): TextPart[] =>
  blocksIn(system).flatMap((block) => textParts(withoutAttribution(textOf(block.text)), block.cache_control))

class MessagesReader {
  readonly turns = new CanonicalTurns()
  readonly #origin: string | undefined

  constructor({ origin }: TargetModel) {
    this.#origin = origin
  }

  add({ role, content }: Json, place: string): void {
    const isAssistant = role === 'assistant'
    if (isAssistant) this.turns.ids.nextTurn()
    const parts = blocksIn(content).flatMap((block, position) => {
      const at = `${place}.${position}`
      return isAssistant ? this.#assistantParts(block, at) : this.#userParts(block, at)
    })
    this.turns.add(isAssistant ? 'assistant' : 'user', parts)
  }

  #assistantParts(block: Json, place: string): CanonicalPart[] {
    if (block.type === 'thinking') return this.#reasoning(block)
    if (block.type !== 'tool_use') {
      const parts = partsOf(block, place)
      if (parts.every(({ kind }) => kind === 'text')) return parts
      return refuseKind(textOf(block.type), place, "the assistant's blocks")
    }
    const name = usableToolName(textOf(block.name))
    const call = this.turns.call(textOf(block.id), name, JSON.stringify(block.input ?? {}), null)
    return [{ ...call, ...cacheOf(block.cache_control) }]
  }

  /** Thinking of other origins is dropped: only its own family can read it. */
  #reasoning(block: Json): ReasoningPart[] {
    const signature = ownSignature(textOf(block.signature), this.#origin)
    if (signature === null) return []
    return [{ kind: 'reasoning', text: textOf(block.thinking), signature, redacted: null }]
  }

  #userParts(block: Json, place: string): CanonicalPart[] {
    return block.type === 'tool_result' ? [this.#result(block, place)] : partsOf(block, place)
  }

  #result(block: Json, place: string): ResultPart {
    const content = blocksIn(block.content).flatMap((inner, position) =>
      partsOf(inner, `${place}.content.${position}`),
    )
    const { cache } = [...content, cacheOf(block.cache_control)].find((part) => part.cache) ?? {}
    const result = this.turns.result(textOf(block.tool_use_id), content, block.is_error === true, cache)
    if (result) return result
    throw invalidRequest(`${place}.tool_use_id: no tool_use block of the previous message has this id.`)
  }
}

/** One block as texts, media, or nothing. @throws ApiError for kinds without an equivalent. */
function partsOf(block: Json, place: string): Array<TextPart | MediaPart> {
  const kind = textOf(block.type)
  const text = blockText(block)
  if (text !== undefined) return textParts(text, block.cache_control)
  if (isDropped(MESSAGES_BLOCKS, kind)) return []
  if (kind === 'image') {
    return [{ ...imageOfUrl(urlOf(block.source), `${place}.source`), ...cacheOf(block.cache_control) }]
  }
  return kind === 'document' ? documentParts(block, place) : refuseKind(kind, place, 'blocks')
}

/** The base64 of a source as a data URL; empty for a source of another kind. */
function urlOf(source: unknown): string {
  const { type, media_type, data } = objectOf(source)
  return type === 'base64' ? `data:${textOf(media_type)};base64,${textOf(data)}` : ''
}

function documentParts(block: Json, place: string): Array<TextPart | MediaPart> {
  const source = objectOf(block.source)
  const title = textOf(block.title)
  const context = textParts(textOf(block.context))
  if (source.type === 'base64') {
    const file = fileOfData(urlOf(source), title || undefined, `${place}.source`)
    return [...context, { ...file, ...cacheOf(block.cache_control) }]
  }
  const about = [...textParts(title), ...context]
  if (source.type === 'text') return [...about, ...textParts(textOf(source.data), block.cache_control)]
  if (source.type === 'content') {
    return [
      ...about,
      ...blocksIn(source.content).flatMap((inner) => partsOf(inner, `${place}.source.content`)),
    ]
  }
  throw invalidRequest(`${place}.source: a document must be sent as base64 or as text.`)
}
