import { type Json, present } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { type Conversation, MessagesTurns } from './messages-turns.ts'
import type { AssistantPart, CallWithOutput, ConversationStep, Thought } from './responses-conversation.ts'
import { partBlocks } from './responses-parts.ts'

/**
 * Steps of a responses conversation as turns of the messages protocol. Thinking of the model's own family keeps its
 * place (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks).
 * @throws ApiError for media that the protocol does not have, and for a conversation without content.
 */
export function turnsOfSteps(steps: readonly ConversationStep[], target: TargetModel): Conversation {
  const turns = new MessagesTurns()
  for (const step of steps) {
    if (step.role === 'system') turns.addSystem(step.texts.map((text) => ({ type: 'text', text })))
    else if (step.role === 'user') turns.add('user', step.parts.flatMap(partBlocks))
    else {
      const results: Json[] = []
      turns.add(
        'assistant',
        step.parts.flatMap((part) => {
          if (part.kind !== 'call') return blocksOf(part, target)
          const call = turns.toolUse(part.call.callId, part.call.name, part.call.arguments)
          results.push(resultBlock(part.call, call.id))
          return [call]
        }),
      )
      turns.add('user', results)
    }
  }
  return turns.finish('input: at least one item must have content.', withProperThinking)
}

function blocksOf(part: Exclude<AssistantPart, { kind: 'call' }>, target: TargetModel): Json[] {
  if (part.kind === 'thought') return thinkingBlocks(part.thought, target)
  return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text }]
}

function resultBlock({ output }: CallWithOutput, id: unknown): Json {
  const content = output.flatMap(partBlocks)
  return present({
    type: 'tool_result',
    tool_use_id: id,
    content: content.length === 0 ? undefined : content,
  })
}

/** Thinking without proof that the model's own family made it is dropped. */
function thinkingBlocks({ text, signature, redacted, origin }: Thought, target: TargetModel): Json[] {
  const own = origin !== undefined && origin === target.origin
  if (!own || !(can(target, 'reasoning') || can(target, 'adaptive_thinking'))) return []
  if (redacted !== undefined) return [{ type: 'redacted_thinking', data: redacted }]
  // Models that return no thinking sign an empty text.
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
