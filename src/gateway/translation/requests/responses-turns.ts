import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, present } from '../json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { toolInput } from '../tool-input.ts'
import { CallIds, usableOnMessages } from './call-ids.ts'
import {
  appendToTurns,
  type Conversation,
  completeConversation,
  type MessagesTurn,
} from './chat-conversation.ts'
import type { AssistantPart, CallWithOutput, ConversationStep, Thought } from './responses-conversation.ts'
import { partBlocks } from './responses-parts.ts'

/**
 * Steps of a responses conversation as turns of the messages protocol. Thinking of the model's own family stands where
 * it was thought (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks).
 * @throws ApiError for media that the protocol does not have, and for a conversation that says nothing.
 */
export function turnsOfSteps(steps: readonly ConversationStep[], target: TargetModel): Conversation {
  const writer = new TurnWriter(target)
  for (const step of steps) writer.add(step)
  return writer.finish()
}

class TurnWriter {
  readonly #target: TargetModel
  readonly #system: Json[][] = []
  readonly #turns: MessagesTurn[] = []
  readonly #called = new Set<string>()
  readonly #ids = new CallIds(usableOnMessages)

  constructor(target: TargetModel) {
    this.#target = target
  }

  add(step: ConversationStep): void {
    if (step.role === 'system') this.#system.push(step.texts.map((text) => ({ type: 'text', text })))
    else if (step.role === 'user') appendToTurns(this.#turns, 'user', step.parts.flatMap(partBlocks))
    else {
      const results: Json[] = []
      appendToTurns(
        this.#turns,
        'assistant',
        step.said.flatMap((said) => this.#blocks(said, results)),
      )
      appendToTurns(this.#turns, 'user', results)
    }
  }

  finish(): Conversation {
    const turns: MessagesTurn[] = []
    for (const { role, content } of this.#turns) {
      appendToTurns(turns, role, role === 'assistant' ? withProperThinking(content) : content)
    }
    const told = completeConversation(this.#system, turns)
    if (!told) throw invalidRequest('input: at least one item must have content.')
    return { ...told, called: this.#called }
  }

  /** @param results takes those of calls. */
  #blocks(said: AssistantPart, results: Json[]): Json[] {
    if (said.kind === 'call') return [this.#call(said.call, results)]
    if (said.kind === 'thought') return thinkingBlocks(said.thought, this.#target)
    return said.text.trim() === '' ? [] : [{ type: 'text', text: said.text }]
  }

  #call(call: CallWithOutput, results: Json[]): Json {
    const id = this.#ids.call(call.callId)
    const output = call.output.flatMap(partBlocks)
    this.#called.add(call.name)
    results.push(
      present({ type: 'tool_result', tool_use_id: id, content: output.length === 0 ? undefined : output }),
    )
    return { type: 'tool_use', id, name: call.name, input: toolInput(call.arguments) }
  }
}

/** What a thought is worth to this model: without a proof that its own family made it, nothing. */
function thinkingBlocks({ text, signature, redacted, origin }: Thought, target: TargetModel): Json[] {
  const own = origin !== undefined && origin === target.origin
  if (!own || !(can(target, 'reasoning') || can(target, 'adaptive_thinking'))) return []
  if (redacted !== undefined) return [{ type: 'redacted_thinking', data: redacted }]
  // Models that tell nothing of their thinking sign an empty text.
  return signature === undefined ? [] : [{ type: 'thinking', thinking: text, signature }]
}

const isThought = ({ type }: Json): boolean => type === 'thinking' || type === 'redacted_thinking'

/**
 * The vendor takes thinking in a turn that begins with it and does not end with it. A turn is other than it was made
 * where it was cut off, or where another model made a part of it.
 */
function withProperThinking(content: Json[]): Json[] {
  const [first] = content
  if (!first || !isThought(first)) return content.filter((block) => !isThought(block))
  return content.slice(0, content.findLastIndex((block) => !isThought(block)) + 1)
}
