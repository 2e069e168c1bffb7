import { createHash } from 'node:crypto'
import { type Json, listOf, objectOf, textOf } from './json.ts'

/** What a provider of chat completions demands of messages, beyond the protocol. Applied to translated requests. */
export interface MessageRules {
  /** Ids of tool calls have nine letters and digits. */
  shortToolIds?: true
  /** Tool messages have the name of the tool. */
  toolNames?: true
  /** A message with tool calls has no text. */
  callsWithoutText?: true
  /** A refusal is text of the assistant. */
  refusalsAsText?: true
  /** Once a tool has been called, each message of the assistant has `reasoning_content`, if only an empty one. */
  reasoningContent?: true
  /** Images have no `detail`. */
  imagesWithoutDetail?: true
  /** The first tool call of each message has a thought signature. */
  thoughtSignatures?: true
}

/**
 * Changes the messages of a body in place. @param body of a chat completion request.
 * @returns names of what was left out, for the caller.
 */
export function changeMessages(body: Json, rules: MessageRules): string[] {
  const messages = listOf(body.messages)
  const called = new Map<string, string>()
  const usesTools = messages.some((message) => callsOf(message).length > 0)
  const dropped = new Set<string>()
  for (const message of messages) {
    if (message.role === 'assistant') changeAssistant(message, rules, { usesTools, called, dropped })
    else if (message.role === 'tool') changeResult(message, rules, called)
    else if (rules.imagesWithoutDetail) dropDetails(message)
  }
  body.messages = messages
  return [...dropped]
}

const callsOf = (message: Json): Json[] => listOf(message.tool_calls)

interface Conversation {
  /** Whether a tool is called anywhere in it. */
  usesTools: boolean
  /** Names of the tools that were called, by the id of the call. */
  called: Map<string, string>
  /** Names of what was left out. */
  dropped: Set<string>
}

function changeAssistant(
  message: Json,
  rules: MessageRules,
  { usesTools, called, dropped }: Conversation,
): void {
  const calls = callsOf(message)
  for (const call of calls) called.set(textOf(call.id), textOf(objectOf(call.function).name))
  if (rules.refusalsAsText && message.refusal !== undefined) {
    message.content = textOf(message.content) + textOf(message.refusal)
    delete message.refusal
  }
  if (rules.callsWithoutText && calls.length > 0 && textOf(message.content) !== '') {
    message.content = ''
    dropped.add('messages.content')
  }
  if (rules.reasoningContent && usesTools) message.reasoning_content ??= ''
  else delete message.reasoning_content
  if (rules.shortToolIds) for (const call of calls) call.id = shortId(textOf(call.id))
  if (rules.thoughtSignatures && calls[0]) calls[0].extra_content ??= UNVERIFIED
  if (calls.length > 0) message.tool_calls = calls
}

function changeResult(
  message: Json,
  { toolNames, shortToolIds }: MessageRules,
  called: Map<string, string>,
): void {
  const id = textOf(message.tool_call_id)
  const name = called.get(id)
  if (toolNames && name !== undefined) message.name = name
  if (shortToolIds) message.tool_call_id = shortId(id)
}

/**
 * Gemini 3 and later refuse a history whose calls have no signature, unless it says so. Callers of other protocols have
 * none (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
const UNVERIFIED = { google: { thought_signature: 'skip_thought_signature_validator' } }

function dropDetails(message: Json): void {
  if (!Array.isArray(message.content)) return
  for (const part of listOf(message.content)) delete objectOf(part.image_url).detail
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const SHORT_ID = /^[a-zA-Z0-9]{9}$/

/** An id of nine letters and digits; the same for the same id, so that results find their calls and prompt caches hold. */
export function shortId(id: string): string {
  if (SHORT_ID.test(id)) return id
  const bytes = createHash('sha256').update(id).digest().subarray(0, 9)
  return [...bytes].map((byte) => ALPHABET[byte % ALPHABET.length]).join('')
}
