import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, listOf, objectOf, present, textOf } from '../json.ts'
import { toolInput } from '../tool-input.ts'
import { CallIds, usableOnMessages } from './call-ids.ts'
import { CHAT_MESSAGE_MEMBERS, CHAT_PARTS } from './chat-members.ts'
import { mediaBlock } from './media.ts'
import { refuseKind, refuseMembers } from './member-rules.ts'
import { usableToolName } from './tool-names.ts'

export interface MessagesTurn {
  role: 'user' | 'assistant'
  content: Json[]
}

export interface Conversation {
  system: Json[]
  /** In turn, the user first. */
  messages: MessagesTurn[]
  /** Names of the tools that were called, as the vendor is told them. */
  called: ReadonlySet<string>
}

/** A conversation of the messages protocol begins with the user; one of chat completions may begin with a greeting. */
const ASSISTANT_BEGAN = '(The assistant begins the conversation.)'

/**
 * Messages of chat completions as turns: system messages are hoisted, messages of one role become one turn, and the
 * results of a turn's calls stand first in the next one (https://docs.anthropic.com/en/docs/tool-use). A conversation
 * of system messages alone is told as the user's, because the protocol answers nothing else.
 * @throws ApiError naming what cannot be said, a call without a result, or a result without a call.
 */
export function conversationOfChat(messages: unknown): Conversation {
  const conversation = new ConversationBuilder()
  for (const [index, message] of listOf(messages).entries()) conversation.add(message, `messages.${index}`)
  return conversation.finish()
}

class ConversationBuilder {
  readonly #system: Json[][] = []
  readonly #turns: MessagesTurn[] = []
  readonly #called = new Set<string>()
  readonly #ids = new CallIds(usableOnMessages)
  /** Where the calls of the turn at hand stand in the request. */
  #callsAt = ''

  add(message: Json, place: string): void {
    refuseMembers(message, CHAT_MESSAGE_MEMBERS, `${place}.`)
    const role = textOf(message.role)
    if (role === 'tool') appendToTurns(this.#turns, 'user', [this.#result(message, place)])
    else if (role === 'assistant') {
      const content = [...assistantTexts(message, `${place}.content`), ...this.#calls(message, place)]
      appendToTurns(this.#turns, 'assistant', marked(content, message.cache_control))
    } else {
      const content = marked(blocksOf(message.content, `${place}.content`), message.cache_control)
      if (role === 'user') appendToTurns(this.#turns, 'user', content)
      else this.#hoist(content, place)
    }
  }

  #hoist(content: Json[], place: string): void {
    if (content.some((block) => block.type !== 'text')) {
      throw invalidRequest(`${place}.content: system messages of this model are text only.`)
    }
    if (content.length > 0) this.#system.push(content)
  }

  finish(): Conversation {
    this.#refuseUnanswered()
    const told = completeConversation(this.#system, this.#turns)
    if (!told) throw invalidRequest('messages: at least one message must have content.')
    return { ...told, called: this.#called }
  }

  #calls(message: Json, place: string): Json[] {
    const calls = listOf(message.tool_calls)
    const continues = this.#turns[this.#turns.length - 1]?.role === 'assistant'
    if (!continues) {
      this.#refuseUnanswered()
      this.#ids.nextTurn()
    }
    if (calls.length > 0) this.#callsAt = `${place}.tool_calls`
    return calls.map((call, position) => this.#call(call, `${place}.tool_calls.${position}`))
  }

  #call(call: Json, place: string): Json {
    if (isPresent(call.type) && call.type !== 'function') {
      throw invalidRequest(`${place}: calls of custom tools are not supported by this model.`)
    }
    const made = objectOf(call.function)
    const name = usableToolName(textOf(made.name))
    this.#called.add(name)
    return {
      type: 'tool_use',
      id: this.#ids.call(textOf(call.id)),
      name,
      input: toolInput(textOf(made.arguments)),
    }
  }

  #result(message: Json, place: string): Json {
    const id = this.#ids.answer(textOf(message.tool_call_id))
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
    const [id] = this.#ids.unanswered()
    if (id === undefined) return
    throw invalidRequest(
      `${this.#callsAt}: the tool call ${JSON.stringify(id.slice(0, 80))} has no tool message.`,
    )
  }
}

/** Adds to the last turn where it is of that role, else as a turn of its own; nothing is no turn. */
export function appendToTurns(turns: MessagesTurn[], role: MessagesTurn['role'], content: Json[]): void {
  if (content.length === 0) return
  const last = turns[turns.length - 1]
  if (last?.role === role) for (const block of content) last.content.push(block)
  else turns.push({ role, content })
}

/**
 * A conversation as the messages protocol takes it.
 * @param system blocks of each system message. @param turns of alternating roles; they are put right in place.
 * @returns null where there is nothing to answer.
 */
export function completeConversation(
  system: Json[][],
  turns: MessagesTurn[],
): Pick<Conversation, 'system' | 'messages'> | null {
  if (turns.length === 0) {
    const last = system.pop()
    if (!last) return null
    turns.push({ role: 'user', content: last })
  } else if (turns[0]?.role === 'assistant') {
    turns.unshift({ role: 'user', content: [{ type: 'text', text: ASSISTANT_BEGAN }] })
  }
  for (const turn of turns) turn.content = resultsFirst(turn.content)
  return { system: system.flat(), messages: turns }
}

/** A second result of one call is part of the first: the vendor takes one. */
function resultsFirst(content: Json[]): Json[] {
  const results = new Map<unknown, Json[]>()
  const others: Json[] = []
  for (const block of content) {
    const sameCall = results.get(block.tool_use_id)
    if (block.type !== 'tool_result') others.push(block)
    else if (sameCall) sameCall.push(block)
    else results.set(block.tool_use_id, [block])
  }
  return [...[...results.values()].map(oneResult), ...others]
}

function oneResult(parts: Json[]): Json {
  const [first = {}, second] = parts
  if (!second) return first
  const content = parts.flatMap((part) => listOf(part.content))
  const marker = parts.map((part) => part.cache_control).find(isPresent)
  return present({ ...first, content: content.length === 0 ? undefined : content, cache_control: marker })
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

/** @throws ApiError for what the assistant cannot have said in the messages protocol, such as images. */
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
  if (Object.hasOwn(CHAT_PARTS, kind) && CHAT_PARTS[kind]?.treatment === 'dropped') return []
  return refuseKind(kind, place, "the assistant's parts")
}

/** Some clients mark a message instead of a part of it: the marker belongs to its end. */
function marked(content: Json[], marker: unknown): Json[] {
  const last = content[content.length - 1]
  return last && isPresent(marker) ? [...content.slice(0, -1), { cache_control: marker, ...last }] : content
}
