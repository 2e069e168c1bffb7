import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, present } from '../json.ts'
import { CallIds, usableOnChat } from './call-ids.ts'
import { FOLLOWS } from './messages-conversation.ts'
import type { AssistantPart, CallWithOutput, ConversationStep } from './responses-conversation.ts'
import { chatPart, type Part } from './responses-parts.ts'

/**
 * Steps of a responses conversation as messages of chat completions. Instructions are all the system's, because only one
 * vendor knows developers.
 * @param instruction to add to the instructions at the beginning, if any.
 * @throws ApiError for files that chat completions do not take, and for a conversation that says nothing.
 */
export function chatMessagesOfSteps(steps: readonly ConversationStep[], instruction: string | null): Json[] {
  const ids = new CallIds(usableOnChat)
  const messages = instructed(steps, instruction).flatMap((step) => {
    if (step.role === 'system') return [{ role: 'system', content: step.texts.join('\n\n') }]
    return step.role === 'user' ? userMessage(step.parts) : assistantMessages(step.said, ids)
  })
  if (messages.length === 0) throw invalidRequest('input: at least one item must have content.')
  return messages
}

function instructed(
  steps: readonly ConversationStep[],
  instruction: string | null,
): readonly ConversationStep[] {
  if (instruction === null) return steps
  const [first, ...others] = steps
  if (first?.role === 'system') return [{ ...first, texts: [...first.texts, instruction] }, ...others]
  return [{ role: 'system', texts: [instruction] }, ...steps]
}

/** One text alone is sent as text: some servers of the protocol take no parts. */
function userMessage(parts: readonly Part[]): Json[] {
  const said = parts.filter((part) => !('text' in part) || part.text !== '')
  const [only] = said
  if (!only) return []
  const content = said.length === 1 && 'text' in only ? only.text : said.map(chatPart)
  return [{ role: 'user', content }]
}

/** One message, as chat completions answer, and the results of its calls; reasoning has no place in it. */
function assistantMessages(said: readonly AssistantPart[], ids: CallIds): Json[] {
  const content = writtenOf(said, 'text')
  const refusal = writtenOf(said, 'refusal')
  const calls = said.flatMap((each) => (each.kind === 'call' ? [each.call] : []))
  if (content === '' && refusal === '' && calls.length === 0) return []
  const told = calls.map((call) => ({ call, id: ids.call(call.callId) }))
  const message = {
    role: 'assistant',
    content: content === '' ? null : content,
    ...present({
      refusal: refusal === '' ? undefined : refusal,
      tool_calls: told.length === 0 ? undefined : told.map(({ call, id }) => toolCall(call, id)),
    }),
  }
  return [message, ...resultMessages(told)]
}

/** Parts of one message belong together as they are, several messages are paragraphs. */
function writtenOf(said: readonly AssistantPart[], kind: 'text' | 'refusal'): string {
  let text = ''
  let item: number | null = null
  for (const each of said) {
    if (each.kind !== kind || each.text === '') continue
    text += item !== null && item !== each.item ? `\n\n${each.text}` : each.text
    item = each.item
  }
  return text
}

function toolCall({ name, arguments: written }: CallWithOutput, id: string): Json {
  // Some servers read them as JSON, and an empty text is none.
  const json = written.trim() === '' ? '{}' : written
  return { id, type: 'function', function: { name, arguments: json } }
}

/** A tool message is text. What the outputs show besides follows all of them as the user's, for nothing may stand between. */
function resultMessages(told: ReadonlyArray<{ call: CallWithOutput; id: string }>): Json[] {
  const shown: Part[] = []
  const results = told.map(({ call, id }) => {
    const texts: string[] = []
    let shows = false
    for (const part of call.output) {
      if ('text' in part) texts.push(part.text)
      else {
        shows = true
        shown.push(part)
      }
    }
    const content = shows && texts.length === 0 ? FOLLOWS : texts.join('\n')
    return { role: 'tool', tool_call_id: id, content }
  })
  return [...results, ...userMessage(shown)]
}
