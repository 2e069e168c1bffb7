import { invalidRequest } from '../../../lib/api-error.ts'
import { entryOf, type Json, listOf, objectOf, textOf } from '../../protocols/json.ts'
import { ownSignature } from '../marked-signature.ts'
import type { TargetModel } from '../target-model.ts'
import { CallIds, usableOnChat } from './call-ids.ts'
import { mediaParts } from './media.ts'
import { isDropped, refuseKind } from './member-rules.ts'
import { MESSAGES_BLOCKS } from './messages-members.ts'
import { usableToolName } from './tool-names.ts'

/** What a model takes back of its own reasoning. */
export type ReasoningTarget = Pick<TargetModel, 'takesReasoning' | 'signsCalls' | 'origin'>

/**
 * Claude Code writes its version and a hash of the request into the first line of the system prompt. Only its own
 * provider reads it, and it defeats the prompt caches of all others
 * (https://github.com/anthropics/claude-code/issues/68900).
 */
const ATTRIBUTION_LINE = /^\s*x-anthropic-billing-header:[^\n]*\n?/

/** A text of the system prompt without that line. */
export const withoutAttribution = (text: string): string => text.replace(ATTRIBUTION_LINE, '')

/** The system prompt of a messages request as a message. @param instruction to add at its end. */
export function systemMessage(system: unknown, instruction: string | null): Json[] {
  const texts = (typeof system === 'string' ? [system] : listOf(system).map((block) => textOf(block.text)))
    .map(withoutAttribution)
    .filter((text) => text.trim() !== '')
  if (instruction !== null) texts.push(instruction)
  return texts.length === 0 ? [] : [{ role: 'system', content: texts.join('\n\n') }]
}

/**
 * Turns of the messages protocol as messages of chat completions.
 * @param target which may take its own reasoning back: texts, which have no signature here, or signatures of calls.
 * @throws ApiError naming what has no equivalent.
 */
export function conversationOfMessages(messages: unknown, target: ReasoningTarget = {}): Json[] {
  const turns = listOf(messages)
  const ids = new CallIds(usableOnChat)
  if (turns[turns.length - 1]?.role === 'assistant') {
    // The vendor's message. Chat completions begin a new answer, which would not continue the caller's text.
    throw invalidRequest(
      'messages: This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  }
  return turns.flatMap((turn, index) => {
    const place = `messages.${index}.content`
    const blocks =
      typeof turn.content === 'string' ? [{ type: 'text', text: turn.content }] : listOf(turn.content)
    if (turn.role !== 'assistant') return userMessages(blocks, ids, place)
    const message = assistantMessage(blocks, ids, place, target)
    return target.takesReasoning ? message.map((each) => ({ ...each, ...reasoningOf(blocks) })) : message
  })
}

function assistantMessage(
  blocks: Json[],
  ids: CallIds,
  place: string,
  { signsCalls, origin }: ReasoningTarget,
): Json[] {
  const calls: Json[] = []
  let text = ''
  let signature: string | null = null
  ids.nextTurn()
  for (const [position, block] of blocks.entries()) {
    if (signsCalls && block.type === 'thinking') signature = ownSignature(textOf(block.signature), origin)
    if (block.type === 'tool_use') {
      calls.push({ ...toolCall(block, ids), ...signatureOfCall(signature) })
      signature = null
    } else text += textOfBlock(block, `${place}.${position}`)
  }
  if (text === '' && calls.length === 0) return []
  // Some servers refuse a message without `content`; all accept null, as in answers.
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
  ]
}

/** The member of a tool call that has the signature of the reasoning before it. */
export const signatureOfCall = (signature: string | null | undefined): Json =>
  signature ? { extra_content: { google: { thought_signature: signature } } } : {}

function reasoningOf(blocks: Json[]): Json {
  const thinking = blocks.filter(({ type, signature }) => type === 'thinking' && signature === '')
  const text = thinking.map((block) => textOf(block.thinking)).join('')
  return text === '' ? {} : { reasoning_content: text }
}

function toolCall(block: Json, ids: CallIds): Json {
  const name = usableToolName(textOf(block.name))
  const written = JSON.stringify(block.input ?? {})
  return { id: ids.call(textOf(block.id)), type: 'function', function: { name, arguments: written } }
}

/** The text of an assistant's block; empty for blocks that only their own provider can read. */
function textOfBlock(block: Json, place: string): string {
  const parts = partsOf(block, place)
  if (parts.some((part) => part.type !== 'text'))
    refuseKind(textOf(block.type), place, "the assistant's blocks")
  return parts.map((part) => textOf(part.text)).join('')
}

/** Results must follow their calls directly; images and files of results come after them, as the user's. */
function userMessages(blocks: Json[], ids: CallIds, place: string): Json[] {
  const results: Json[] = []
  const parts: Json[] = []
  for (const [position, block] of blocks.entries()) {
    const at = `${place}.${position}`
    if (block.type === 'tool_result') {
      const { text, media } = resultContent(block, `${at}.content`)
      const id = textOf(block.tool_use_id)
      results.push({ role: 'tool', tool_call_id: ids.answer(id) ?? id, content: text })
      for (const part of media) parts.push(part)
    } else for (const part of partsOf(block, at)) parts.push(part)
  }
  return parts.length === 0 ? results : [...results, { role: 'user', content: plain(parts) }]
}

/** Text of a tool message whose result has only images or files. */
export const FOLLOWS = '(What the tool returned follows as an attachment.)'
const ERROR_MARK = 'Error: '

/** A tool message is text. */
function resultContent(block: Json, place: string): { text: string; media: Json[] } {
  const content =
    typeof block.content === 'string' ? [{ type: 'text', text: block.content }] : listOf(block.content)
  const parts = content.flatMap((inner, position) => partsOf(inner, `${place}.${position}`))
  const media = parts.filter((part) => part.type !== 'text')
  const texts = parts.filter((part) => part.type === 'text').map((part) => textOf(part.text))
  const text = texts.length === 0 && media.length > 0 ? FOLLOWS : texts.join('\n')
  return { text: block.is_error === true ? `${ERROR_MARK}${text}` : text, media }
}

const TEXTS: Record<string, (block: Json) => string> = {
  text: (block) => textOf(block.text),
  compaction: (block) => textOf(block.content),
  tool_reference: (block) => `Tool: ${textOf(block.tool_name)}`,
  search_result: (block) =>
    [block.title, block.source, ...listOf(block.content).map((inner) => inner.text)]
      .map(textOf)
      .filter((text) => text !== '')
      .join('\n'),
}

/** The text of a block that is text, or becomes text; undefined for any other. */
export const blockText = (block: Json): string | undefined => entryOf(TEXTS, textOf(block.type))?.(block)

/** One block as content parts: texts, media, or none. @throws ApiError for kinds without an equivalent. */
function partsOf(block: Json, place: string): Json[] {
  const kind = textOf(block.type)
  const text = blockText(block)
  if (text !== undefined) return text === '' ? [] : [{ type: 'text', text }]
  if (isDropped(MESSAGES_BLOCKS, kind)) return []
  return mediaParts(block, place)
}

/** A single text is sent as a string: some servers take no parts. */
function plain(parts: Json[]): unknown {
  const [only] = parts
  return parts.length === 1 && objectOf(only).type === 'text' ? objectOf(only).text : parts
}
