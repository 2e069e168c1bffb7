import { type JsonRecord, toList, toRecord, toText } from './json-value.ts'

/**
 * The rule of chat completions about tool calls that a message list breaks, in the vendor's words, or undefined:
 * every call of an assistant message is answered by the tool messages right after it, and none comes without a call.
 */
export function findChatFault(messages: unknown[]): string | undefined {
  let open = new Set<string>()
  let afterCalls = false
  for (const message of messages.map(toRecord)) {
    if (message.role === 'tool') {
      if (!afterCalls) {
        return "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
      }
      open.delete(toText(message.tool_call_id))
      continue
    }
    if (open.size > 0) return unansweredCalls(open)
    const calls = toList(message.tool_calls).map((call) => toText(toRecord(call).id))
    open = new Set(calls)
    afterCalls = calls.length > 0
  }
  return open.size > 0 ? unansweredCalls(open) : undefined
}

function unansweredCalls(ids: Set<string>): string {
  return (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
    `The following tool_call_ids did not have response messages: ${[...ids].join(', ')}`
  )
}

/**
 * The rule of Anthropic messages about content that a message list breaks, in the vendor's words, or undefined: no
 * empty text, every `tool_use` answered in the next turn, no `tool_result` without its use. Consecutive messages of one
 * role are one turn. https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
 */
export function findMessagesFault(messages: unknown[]): string | undefined {
  const turns = joinTurns(messages)
  for (const [index, { blocks }] of turns.entries()) {
    if (blocks.some((block) => block.type === 'text' && block.text === '')) {
      return 'messages: text content blocks must be non-empty'
    }
    const previous = index === 0 ? [] : idsOf(turns[index - 1]?.blocks ?? [], 'tool_use', 'id')
    const results = idsOf(blocks, 'tool_result', 'tool_use_id')
    const unexpected = results.find((id) => !previous.includes(id))
    if (unexpected !== undefined) {
      return `messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${unexpected}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
    }
    const missing = previous.filter((id) => !results.includes(id))
    if (missing.length > 0) {
      return `messages.${index - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
    }
  }
  return undefined
}

interface JoinedTurn {
  role: unknown
  blocks: JsonRecord[]
}

function joinTurns(messages: unknown[]): JoinedTurn[] {
  const turns: JoinedTurn[] = []
  for (const { role, content } of messages.map(toRecord)) {
    if (role === 'system') continue
    const blocks =
      typeof content === 'string' ? [{ type: 'text', text: content }] : toList(content).map(toRecord)
    const last = turns.at(-1)
    if (last !== undefined && last.role === role) last.blocks.push(...blocks)
    else turns.push({ role, blocks })
  }
  return turns
}

function idsOf(blocks: JsonRecord[], type: string, member: string): string[] {
  return blocks.filter((block) => block.type === type).map((block) => toText(block[member]))
}
