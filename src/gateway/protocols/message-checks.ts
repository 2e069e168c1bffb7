import type { JsonKind } from '../../lib/json-visitor.ts'
import type { MessagesCheck } from './request-outline.ts'

/** Parsers differ in which of two members they take, and policies depend on the role. */
const givenTwice = (index: number) => `messages.${index}.role: May be given once only.`

const CHAT_ROLES = ['system', 'developer', 'user', 'assistant', 'tool']

/** Messages of chat completions: valid roles, content of a valid kind, `tool_call_id` on tool messages. */
export class ChatMessagesCheck implements MessagesCheck {
  problem: string | null = null
  #role: string | null = null
  #hasToolCallId = false

  member(index: number, name: string, kind: JsonKind, text: string | null): void {
    if (name === 'role') {
      if (this.#role !== null) this.problem ??= givenTwice(index)
      this.#role = text ?? ''
    }
    if (name === 'tool_call_id') this.#hasToolCallId = kind === 'string' && text !== ''
    else if (name === 'content' && kind !== 'string' && kind !== 'array' && kind !== 'null') {
      this.problem ??= `messages.${index}.content: Input should be a string, an array of content parts or null.`
    } else if (name === 'tool_calls' && kind !== 'array' && kind !== 'null') {
      this.problem ??= `messages.${index}.tool_calls: Input should be an array.`
    }
  }

  message(index: number, kind: JsonKind): void {
    const role = this.#role
    if (kind !== 'object') this.problem ??= `messages.${index}: Input should be an object.`
    else if (role === null) this.problem ??= `messages.${index}.role: Field required.`
    else if (!CHAT_ROLES.includes(role)) {
      this.problem ??= `messages.${index}.role: Input should be 'system', 'developer', 'user', 'assistant' or 'tool'.`
    } else if (role === 'tool' && !this.#hasToolCallId) {
      this.problem ??= `messages.${index}.tool_call_id: Field required on a message with role 'tool'.`
    }
    this.#role = null
    this.#hasToolCallId = false
  }
}

/**
 * Messages of the messages protocol: roles `user` and `assistant` in turn, `user` first. The wording of the role
 * problem matters: Claude Code recovers from a 400 only when it reads like this.
 */
export class AlternatingMessagesCheck implements MessagesCheck {
  problem: string | null = null
  #role: string | null = null
  #previous: string | null = null
  #hasContent = false

  member(index: number, name: string, kind: JsonKind, text: string | null): void {
    if (name === 'role') {
      if (this.#role !== null) this.problem ??= givenTwice(index)
      this.#role = text ?? ''
    }
    if (name === 'content') {
      this.#hasContent = true
      if (kind !== 'string' && kind !== 'array') {
        this.problem ??= `messages.${index}.content: Input should be a string or an array of content blocks.`
      }
    }
  }

  message(index: number, kind: JsonKind): void {
    const role = this.#role
    if (kind !== 'object') this.problem ??= `messages.${index}: Input should be an object.`
    else if (role === null) this.problem ??= `messages.${index}.role: Field required.`
    else if (role !== 'user' && role !== 'assistant') {
      this.problem ??= `messages.${index}.role: Input should be 'user' or 'assistant'`
    } else if (index === 0 && role !== 'user') {
      this.problem ??= `messages.0.role: The first message must have the role 'user'`
    } else if (role === this.#previous) {
      this.problem ??= `messages.${index}.role: Roles must alternate between 'user' and 'assistant', but found '${role}' twice in a row`
    } else if (!this.#hasContent) this.problem ??= `messages.${index}.content: Field required.`
    this.#previous = role
    this.#role = null
    this.#hasContent = false
  }
}
