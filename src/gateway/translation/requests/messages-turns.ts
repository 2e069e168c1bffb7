import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, listOf, present } from '../../protocols/json.ts'
import { toolInput } from '../tool-input.ts'
import { CallIds, usableOnMessages } from './call-ids.ts'

/** A turn of the messages protocol. */
export interface MessagesTurn {
  role: 'user' | 'assistant'
  content: Json[]
}

/** A conversation in the form of the messages protocol. */
export interface Conversation {
  system: Json[]
  /** Alternating roles, the user first. */
  messages: MessagesTurn[]
  /** Upstream names of the tools that were called. */
  called: ReadonlySet<string>
}

/** A conversation of the messages protocol begins with the user; one of chat completions may begin with a greeting. */
export const ASSISTANT_BEGAN = '(The assistant begins the conversation.)'

/** Collects a conversation of the messages protocol. */
export class MessagesTurns {
  readonly ids = new CallIds(usableOnMessages)
  readonly #system: Json[][] = []
  readonly #turns: MessagesTurn[] = []
  readonly #called = new Set<string>()

  get lastRole(): MessagesTurn['role'] | undefined {
    return this.#turns[this.#turns.length - 1]?.role
  }

  /** Adds the blocks of a system message. */
  addSystem(blocks: Json[]): void {
    if (blocks.length > 0) this.#system.push(blocks)
  }

  add(role: MessagesTurn['role'], content: Json[]): void {
    appendTo(this.#turns, role, content)
  }

  /** @returns the block of a call; it is not added yet. @param written its arguments, JSON as a rule. */
  toolUse(callId: string, name: string, written: string): Json {
    this.#called.add(name)
    return { type: 'tool_use', id: this.ids.call(callId), name, input: toolInput(written) }
  }

  /**
   * A conversation of system messages alone becomes the user's, because the protocol answers nothing else.
   * @param whenEmpty message of the error for a conversation without content.
   * @param ofAssistant what the protocol takes of an assistant's turn.
   * @throws ApiError invalid_request
   */
  finish(whenEmpty: string, ofAssistant = (content: Json[]): Json[] => content): Conversation {
    const messages: MessagesTurn[] = []
    for (const { role, content } of this.#turns) {
      appendTo(messages, role, role === 'assistant' ? ofAssistant(content) : content)
    }
    if (messages.length === 0) {
      const last = this.#system.pop()
      if (!last) throw invalidRequest(whenEmpty)
      messages.push({ role: 'user', content: last })
    } else if (messages[0]?.role === 'assistant') {
      messages.unshift({ role: 'user', content: [{ type: 'text', text: ASSISTANT_BEGAN }] })
    }
    for (const turn of messages) turn.content = resultsFirst(turn.content)
    return { system: this.#system.flat(), messages, called: this.#called }
  }
}

/** Appends to the last turn where it has that role, else as a turn of its own. */
function appendTo(turns: MessagesTurn[], role: MessagesTurn['role'], content: Json[]): void {
  if (content.length === 0) return
  const last = turns[turns.length - 1]
  if (last?.role === role) for (const block of content) last.content.push(block)
  else turns.push({ role, content: [...content] })
}

/**
 * Results of calls stand first in a turn (https://docs.anthropic.com/en/docs/tool-use). A second result of one call
 * becomes part of the first: the vendor takes one.
 */
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
