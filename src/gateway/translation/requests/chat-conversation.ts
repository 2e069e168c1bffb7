import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, listOf, objectOf, present, textOf } from '../../protocols/json.ts'
import { CHAT_MESSAGE_MEMBERS, CHAT_PARTS } from './chat-members.ts'
import { mediaBlock } from './media.ts'
import { isDropped, refuseKind, refuseLostMembers } from './member-rules.ts'
import { type Conversation, MessagesTurns } from './messages-turns.ts'
import { usableToolName } from './tool-names.ts'

/**
 * Messages of chat completions in the messages protocol: system messages are hoisted, and messages of one role become
 * one turn.
 * @throws ApiError naming what has no equivalent, a call without a result, or a result without a call.
 */
export function conversationOfChat(messages: unknown): Conversation {
  const conversation = new ConversationBuilder()
  for (const [index, message] of listOf(messages).entries()) conversation.add(message, `messages.${index}`)
  return conversation.finish()
}

class ConversationBuilder {
  readonly #turns = new MessagesTurns()
  /** Place in the request of the calls of the current turn. */
  #callsAt = ''

  add(message: Json, place: string): void {
    refuseLostMembers(message, CHAT_MESSAGE_MEMBERS, `${place}.`)
    const role = textOf(message.role)
    if (role === 'tool') this.#turns.add('user', [this.#result(message, place)])
    else if (role === 'assistant') {
      const content = [...assistantTexts(message, `${place}.content`), ...this.#calls(message, place)]
      this.#turns.add('assistant', marked(content, message.cache_control))
    } else {
      const content = marked(blocksOf(message.content, `${place}.content`), message.cache_control)
      if (role === 'user') this.#turns.add('user', content)
      else this.#hoist(content, place)
    }
  }

  #hoist(content: Json[], place: string): void {
    if (content.some((block) => block.type !== 'text')) {
      throw invalidRequest(`${place}.content: system messages of this model are text only.`)
    }
    this.#turns.addSystem(content)
  }

  finish(): Conversation {
    this.#refuseUnanswered()
    return this.#turns.finish('messages: at least one message must have content.')
  }

  #calls(message: Json, place: string): Json[] {
    const calls = listOf(message.tool_calls)
    if (this.#turns.lastRole !== 'assistant') {
      this.#refuseUnanswered()
      this.#turns.ids.nextTurn()
    }
    if (calls.length > 0) this.#callsAt = `${place}.tool_calls`
    return calls.map((call, position) => this.#call(call, `${place}.tool_calls.${position}`))
  }

  #call(call: Json, place: string): Json {
    if (isPresent(call.type) && call.type !== 'function') {
      throw invalidRequest(`${place}: calls of custom tools are not supported by this model.`)
    }
    const made = objectOf(call.function)
    return this.#turns.toolUse(textOf(call.id), usableToolName(textOf(made.name)), textOf(made.arguments))
  }

  #result(message: Json, place: string): Json {
    const id = this.#turns.ids.answer(textOf(message.tool_call_id))
    if (id === undefined) {
      throw invalidRequest(`${place}.tool_call_id: no tool call of the assistant before it has this id.`)
    }
    const content = blocksOf(message.content, `${place}.content`)
    // A marker cannot stand within a result, only on it.
    const marker = content.map((block) => block.cache_control).find(isPresent) ?? message.cache_control
    const plain = content.map(({ cache_control: _marker, ...block }) => block)
    return present({
      type: 'tool_result',
      tool_use_id: id,
      content: plain.length === 0 ? undefined : plain,
      cache_control: marker,
    })
  }

  #refuseUnanswered(): void {
    const [id] = this.#turns.ids.unanswered()
    if (id === undefined) return
    throw invalidRequest(
      `${this.#callsAt}: the tool call ${JSON.stringify(id.slice(0, 80))} has no tool message.`,
    )
  }
}

/** The vendor refuses texts of nothing but white space. */
const textBlock = (text: string, marker: unknown = undefined): Json[] =>
  text.trim() === '' ? [] : [present({ type: 'text', text, cache_control: marker })]

function blocksOf(content: unknown, place: string): Json[] {
  if (typeof content === 'string') return textBlock(content)
  return listOf(content).flatMap((part, position) =>
    part.type === 'text'
      ? textBlock(textOf(part.text), part.cache_control)
      : [present({ ...mediaBlock(part, `${place}.${position}`), cache_control: part.cache_control })],
  )
}

/** @throws ApiError for parts that the messages protocol does not allow of the assistant, such as images. */
function assistantTexts(message: Json, place: string): Json[] {
  const { content } = message
  const parts =
    typeof content === 'string'
      ? textBlock(content)
      : listOf(content).flatMap((part, position) => assistantText(part, `${place}.${position}`))
  return [...parts, ...textBlock(textOf(message.refusal))]
}

function assistantText(part: Json, place: string): Json[] {
  if (part.type === 'text') return textBlock(textOf(part.text), part.cache_control)
  if (part.type === 'refusal') return textBlock(textOf(part.refusal), part.cache_control)
  const kind = textOf(part.type)
  if (isDropped(CHAT_PARTS, kind)) return []
  return refuseKind(kind, place, "the assistant's parts")
}

/** Some clients mark a message instead of a part of it: the marker belongs to its end. */
function marked(content: Json[], marker: unknown): Json[] {
  const last = content[content.length - 1]
  return last && isPresent(marker) ? [...content.slice(0, -1), { cache_control: marker, ...last }] : content
}
