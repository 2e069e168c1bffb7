import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, present } from '../../protocols/json.ts'
import { CallIds, usableOnChat } from './call-ids.ts'
import { FOLLOWS, type ReasoningTarget, signatureOfCall } from './messages-conversation.ts'
import type { AssistantPart, CallWithOutput, ConversationStep } from './responses-conversation.ts'
import { chatPart, type Part } from './responses-parts.ts'

/**
 * Steps of a responses conversation as messages of chat completions. All instructions become system messages, because
 * only one vendor has developer messages.
 * @param instruction to append to the first instructions, if any. @param target which may take its own reasoning back.
 * @throws ApiError for files that chat completions do not take, and for a conversation without content.
 */
export function chatMessagesOfSteps(
  steps: readonly ConversationStep[],
  instruction: string | null,
  target: ReasoningTarget,
): Json[] {
  const ids = new CallIds(usableOnChat)
  const messages = instructed(steps, instruction).flatMap((step) => {
    if (step.role === 'system') return [{ role: 'system', content: step.texts.join('\n\n') }]
    return step.role === 'user' ? userMessage(step.parts) : assistantMessages(step.parts, ids, target)
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

/** A single text is sent as a string: some servers take no parts. */
function userMessage(parts: readonly Part[]): Json[] {
  const given = parts.filter((part) => !('text' in part) || part.text !== '')
  const [only] = given
  if (!only) return []
  const content = given.length === 1 && 'text' in only ? only.text : given.map(chatPart)
  return [{ role: 'user', content }]
}

/** One assistant message of chat completions, and the results of its calls. Few models take reasoning in it. */
function assistantMessages(
  parts: readonly AssistantPart[],
  ids: CallIds,
  { takesReasoning, signsCalls, origin }: ReasoningTarget,
): Json[] {
  const content = writtenOf(parts, 'text')
  const refusal = writtenOf(parts, 'refusal')
  const calls = parts.flatMap((each) => (each.kind === 'call' ? [each.call] : []))
  if (content === '' && refusal === '' && calls.length === 0) return []
  const calledTools = calls.map((call) => ({ call, id: ids.call(call.callId) }))
  const signatures = signsCalls ? signaturesOf(parts, origin) : new Map<CallWithOutput, string>()
  const message = {
    role: 'assistant',
    content: content === '' ? null : content,
    ...present({
      reasoning_content: (takesReasoning && reasoningOf(parts, origin)) || undefined,
      refusal: refusal === '' ? undefined : refusal,
      tool_calls:
        calledTools.length === 0
          ? undefined
          : calledTools.map(({ call, id }) => ({
              ...toolCall(call, id),
              ...signatureOfCall(signatures.get(call)),
            })),
    }),
  }
  return [message, ...resultMessages(calledTools)]
}

/** The signature of the model's own reasoning that is directly before a call. */
function signaturesOf(
  parts: readonly AssistantPart[],
  origin: string | undefined,
): ReadonlyMap<CallWithOutput, string> {
  const signatures = new Map<CallWithOutput, string>()
  let latest: string | undefined
  for (const part of parts) {
    if (part.kind === 'thought') latest = part.thought.origin === origin ? part.thought.signature : undefined
    else if (part.kind === 'call') {
      if (latest !== undefined) signatures.set(part.call, latest)
      latest = undefined
    }
  }
  return signatures
}

/** The readable reasoning of the model itself. */
const reasoningOf = (parts: readonly AssistantPart[], origin: string | undefined): string =>
  parts
    .map((part) => (part.kind === 'thought' && part.thought.origin === origin ? part.thought.text : ''))
    .join('')

/** Parts of one message belong together as they are, several messages are paragraphs. */
function writtenOf(parts: readonly AssistantPart[], kind: 'text' | 'refusal'): string {
  let text = ''
  let item: number | null = null
  for (const each of parts) {
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

/** Tool messages are text and must be adjacent. Images and files of the outputs follow them, as the user's. */
function resultMessages(calls: ReadonlyArray<{ call: CallWithOutput; id: string }>): Json[] {
  const shown: Part[] = []
  const results = calls.map(({ call, id }) => {
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
