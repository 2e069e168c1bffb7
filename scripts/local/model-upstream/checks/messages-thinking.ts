import { type JsonRecord, toList, toNumber, toRecord, toText } from '../json-value.ts'
import type { ModelTraits } from '../model-traits.ts'
import { isIssued, isIssuedRedactedData } from '../signatures.ts'
import { type Fault, firstFault } from './fault.ts'
import { type MessageTurn, type PlacedBlock, placeOf, turnsOf } from './messages-turns.ts'

const guide = 'https://docs.claude.com/en/docs/build-with-claude/extended-thinking'

/**
 * Faults of thinking: options that exclude it, models without it, and blocks that differ from the issued ones.
 * https://docs.claude.com/en/docs/build-with-claude/extended-thinking
 */
export function findThinkingFault(body: JsonRecord, traits: ModelTraits): Fault | undefined {
  const { type } = toRecord(body.thinking)
  const thinks = type === 'enabled' || type === 'adaptive'
  return (
    supportFault(body, traits) ??
    (thinks ? exclusionFault(body) : undefined) ??
    firstFault(
      turnsOf(toList(body.messages)).filter(({ role }) => role === 'assistant'),
      blocksFault,
    ) ??
    lastTurnFault(body, type)
  )
}

function supportFault(body: JsonRecord, { thinking }: ModelTraits): Fault | undefined {
  const { type, budget_tokens: budget } = toRecord(body.thinking)
  if (type === 'enabled' && thinking === 'adaptive') {
    return {
      message:
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    }
  }
  if (type === 'adaptive' && thinking === 'budget') {
    return { message: 'adaptive thinking is not supported on this model' }
  }
  const maximum = toNumber(body.max_tokens)
  if (type === 'enabled' && maximum !== undefined && (toNumber(budget) ?? 0) >= maximum) {
    return {
      message: `\`max_tokens\` must be greater than \`thinking.budget_tokens\`. Please consult our documentation at ${guide}`,
    }
  }
  return undefined
}

function exclusionFault(body: JsonRecord): Fault | undefined {
  const { temperature, top_p: topP, top_k: topK } = body
  const choice = toRecord(body.tool_choice).type
  if (choice === 'any' || choice === 'tool') {
    return { message: 'Thinking may not be enabled when tool_choice forces tool use.' }
  }
  const consult = `Please consult our documentation at ${guide}#important-considerations-when-using-extended-thinking`
  if (typeof temperature === 'number' && temperature !== 1) {
    return { message: `\`temperature\` may only be set to 1 when thinking is enabled. ${consult}` }
  }
  if (typeof topP === 'number' && topP < 0.95) {
    return {
      message: `\`top_p\` must be greater than or equal to 0.95 or unset when thinking is enabled. ${consult}`,
    }
  }
  if (typeof topK === 'number')
    return { message: `\`top_k\` must be unset when thinking is enabled. ${consult}` }
  return undefined
}

const isThought = ({ type }: PlacedBlock): boolean => type === 'thinking' || type === 'redacted_thinking'

function blocksFault(turn: MessageTurn): Fault | undefined {
  const [first] = turn.blocks
  const last = turn.blocks.at(-1)
  if (first !== undefined && !isThought(first) && turn.blocks.some(isThought)) {
    return {
      message: `${placeOf(first)}: If an assistant message contains any thinking blocks, the first block must be \`thinking\` or \`redacted_thinking\`. Found \`${first.type}\`.`,
    }
  }
  const forged = turn.blocks.find(
    ({ type, block }) =>
      (type === 'thinking' && !isIssued(toText(block.signature), toText(block.thinking))) ||
      (type === 'redacted_thinking' && !isIssuedRedactedData(toText(block.data))),
  )
  if (forged !== undefined) {
    const member = forged.type === 'thinking' ? 'signature' : 'data'
    return { message: `${placeOf(forged)}: Invalid \`${member}\` in \`${forged.type}\` block` }
  }
  if (last !== undefined && isThought(last)) {
    return {
      message: `messages.${last.message}: The final block in an assistant message cannot be \`thinking\`.`,
    }
  }
  return undefined
}

/**
 * With a budget, the assistant's turn that the tool results answer must begin with thinking. With thinking disabled, a turn
 * that is continued must have none. Adaptive thinking requires neither.
 */
function lastTurnFault(body: JsonRecord, type: unknown): Fault | undefined {
  const turns = turnsOf(toList(body.messages))
  const last = turns.at(-1)
  const answered = last?.blocks.some((placed) => placed.type === 'tool_result') === true
  const turn = last?.role === 'assistant' ? last : answered ? turns.at(-2) : undefined
  const [first] = turn?.blocks ?? []
  if (first === undefined) return undefined
  if (type === 'enabled' && !isThought(first)) {
    return {
      message: `${placeOf(first)}.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at ${guide}`,
    }
  }
  const thought = last?.role === 'assistant' ? last.blocks.find(isThought) : undefined
  if (type !== 'enabled' && type !== 'adaptive' && thought !== undefined) {
    return {
      message: `${placeOf(thought)}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`. To use thinking blocks, enable \`thinking\` in your request.`,
    }
  }
  return undefined
}
