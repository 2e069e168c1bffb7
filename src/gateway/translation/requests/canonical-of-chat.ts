import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, listOf, objectOf, textOf } from '../../protocols/json.ts'
import { ownSignature } from '../marked-signature.ts'
import type { TargetModel } from '../target-model.ts'
import { audioOfData, fileOfData, imageOfUrl } from './canonical-media.ts'
import { CHAT_TO_CANONICAL } from './canonical-members.ts'
import type { CallPart, CanonicalPart, CanonicalRequest, MediaPart, TextPart } from './canonical-request.ts'
import { canonicalSettings } from './canonical-settings.ts'
import { CanonicalTurns, cacheOf, textParts } from './canonical-turns.ts'
import { CHAT_MESSAGE_MEMBERS, CHAT_PARTS } from './chat-members.ts'
import { isDropped, refuseKind, refuseLostMembers } from './member-rules.ts'
import { usableToolName } from './tool-names.ts'

/**
 * A chat completion request as a canonical request. `CHAT_TO_CANONICAL` has the treatment of each member.
 * @throws ApiError invalid_request naming the member or message that has no equivalent, a call without a result, or a
 * result without a call.
 */
export function canonicalOfChat(request: Json, target: TargetModel): CanonicalRequest {
  refuseLostMembers(request, CHAT_TO_CANONICAL)
  const reader = new ChatReader(target)
  for (const [index, message] of listOf(request.messages).entries()) reader.add(message, `messages.${index}`)
  return { ...reader.finish(), ...canonicalSettings(request) }
}

class ChatReader {
  readonly #turns = new CanonicalTurns()
  readonly #origin: string | undefined
  /** Place in the request of the calls of the current turn. */
  #callsAt = ''

  constructor({ origin }: TargetModel) {
    this.#origin = origin
  }

  add(message: Json, place: string): void {
    refuseLostMembers(message, CHAT_MESSAGE_MEMBERS, `${place}.`)
    const at = `${place}.content`
    if (message.role === 'tool') this.#addResult(message, place)
    else if (message.role === 'assistant') {
      const texts = partsOf(message.content, at, assistantPart)
      const refusal = textParts(textOf(message.refusal))
      const parts = [...texts, ...refusal, ...this.#calls(message, place)]
      this.#turns.add('assistant', marked(parts, message.cache_control))
    } else if (message.role === 'user') {
      this.#turns.add('user', marked(partsOf(message.content, at, userPart), message.cache_control))
    } else {
      this.#turns.addSystem(marked(partsOf(message.content, at, systemPart), message.cache_control))
    }
  }

  finish(): ReturnType<CanonicalTurns['finish']> {
    this.#refuseUnanswered()
    return this.#turns.finish('messages: at least one message must have content.')
  }

  #calls(message: Json, place: string): CallPart[] {
    const calls = listOf(message.tool_calls)
    if (this.#turns.lastRole !== 'assistant') {
      this.#refuseUnanswered()
      this.#turns.ids.nextTurn()
    }
    if (calls.length > 0) this.#callsAt = `${place}.tool_calls`
    return calls.map((call, position) => this.#call(call, `${place}.tool_calls.${position}`))
  }

  #call(call: Json, place: string): CallPart {
    if (isPresent(call.type) && call.type !== 'function') {
      throw invalidRequest(`${place}: calls of custom tools are not supported by this model.`)
    }
    const made = objectOf(call.function)
    const { thought_signature } = objectOf(objectOf(call.extra_content).google)
    const signature = ownSignature(textOf(thought_signature), this.#origin)
    const name = usableToolName(textOf(made.name))
    return this.#turns.call(textOf(call.id), name, textOf(made.arguments), signature)
  }

  #addResult(message: Json, place: string): void {
    const content = partsOf(message.content, `${place}.content`, userPart)
    const { cache } = [...content, cacheOf(message.cache_control)].find((part) => part.cache) ?? {}
    const result = this.#turns.result(textOf(message.tool_call_id), content, false, cache)
    if (!result) {
      throw invalidRequest(`${place}.tool_call_id: no tool call of the assistant before it has this id.`)
    }
    this.#turns.add('user', [result])
  }

  #refuseUnanswered(): void {
    const [id] = this.#turns.ids.unanswered()
    if (id === undefined) return
    throw invalidRequest(
      `${this.#callsAt}: the tool call ${JSON.stringify(id.slice(0, 80))} has no tool message.`,
    )
  }
}

type PartReader<Part> = (part: Json, place: string) => Part[]

function partsOf<Part>(content: unknown, place: string, read: PartReader<Part>): Array<Part | TextPart> {
  if (typeof content === 'string') return textParts(content)
  return listOf(content).flatMap(
    (part, position): Array<Part | TextPart> =>
      part.type === 'text'
        ? textParts(textOf(part.text), part.cache_control)
        : read(part, `${place}.${position}`),
  )
}

const userPart: PartReader<MediaPart> = (part, place) => [
  { ...mediaOf(part, place), ...cacheOf(part.cache_control) },
]

function mediaOf(part: Json, place: string): MediaPart {
  const kind = textOf(part.type)
  if (kind === 'image_url') {
    const url = textOf(part.image_url) || textOf(objectOf(part.image_url).url)
    return imageOfUrl(url, `${place}.image_url.url`)
  }
  if (kind === 'file') {
    const file = objectOf(part.file)
    return fileOfData(textOf(file.file_data), textOf(file.filename) || undefined, `${place}.file`)
  }
  if (kind === 'input_audio') {
    const { data, format } = objectOf(part.input_audio)
    return audioOfData(textOf(data), textOf(format), `${place}.input_audio`)
  }
  return refuseKind(kind, place, 'parts')
}

const assistantPart: PartReader<TextPart> = (part, place) => {
  const kind = textOf(part.type)
  if (kind === 'refusal') return textParts(textOf(part.refusal), part.cache_control)
  return isDropped(CHAT_PARTS, kind) ? [] : refuseKind(kind, place, "the assistant's parts")
}

const systemPart: PartReader<TextPart> = (_part, place) => {
  throw invalidRequest(`${place}: system messages of this model are text only.`)
}

/** Some clients mark a message instead of a part of it: the marker belongs to its end. */
function marked<Part extends CanonicalPart>(parts: Part[], marker: unknown): Part[] {
  const last = parts[parts.length - 1]
  if (!last || !isPresent(marker) || 'cache' in last) return parts
  return [...parts.slice(0, -1), { ...last, ...cacheOf(marker) }]
}
