import { type JsonRecord, toList, toRecord, toText } from '../json-value.ts'
import { type Fault, firstFault } from './fault.ts'

/** A block with the place where it was sent. */
export interface PlacedBlock {
  block: JsonRecord
  type: string
  /** Number of its message, and of the block in it. */
  message: number
  position: number
}

/** Consecutive messages of one role are one turn; instructions of role `system` are none. */
export interface MessageTurn {
  role: string
  blocks: PlacedBlock[]
  /** Number of the first message. */
  message: number
}

/** The turns of a message list; a text is one block. */
export function turnsOf(messages: unknown[]): MessageTurn[] {
  const turns: MessageTurn[] = []
  for (const [message, value] of messages.entries()) {
    const { role, content } = toRecord(value)
    if (role === 'system') continue
    const list = typeof content === 'string' ? [{ type: 'text', text: content }] : toList(content)
    const blocks = list.map((item, position) => {
      const block = toRecord(item)
      return { block, type: toText(block.type), message, position }
    })
    const last = turns.at(-1)
    if (last !== undefined && last.role === role) last.blocks.push(...blocks)
    else turns.push({ role: toText(role), blocks, message })
  }
  return turns
}

export const placeOf = ({ message, position }: PlacedBlock): string =>
  `messages.${message}.content.${position}`

/**
 * Faults in the contents and the order of a conversation.
 * https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
 */
export function findTurnsFault(messages: unknown[]): Fault | undefined {
  const turns = turnsOf(messages)
  if (turns[0] !== undefined && turns[0].role !== 'user') {
    return { message: 'messages: first message must use the "user" role' }
  }
  return (
    firstFault(messages, (message, index) => emptyFault(toRecord(message), index, messages.length)) ??
    firstFault(turns, (turn) => firstFault(turn.blocks, (placed) => roleFault(turn.role, placed))) ??
    repeatedUseFault(turns) ??
    firstFault(turns, (turn, index) => resultsFault(turns[index - 1], turn)) ??
    lastTurnFault(turns) ??
    firstFault(turns, (turn, index) => serverToolFault(turn, index === turns.length - 1))
  )
}

function emptyFault({ role, content }: JsonRecord, index: number, count: number): Fault | undefined {
  const isPrefill = role === 'assistant' && index === count - 1
  const isEmpty = content === '' || (Array.isArray(content) && content.length === 0)
  if (isEmpty && !isPrefill) {
    const message = 'all messages must have non-empty content except for the optional final assistant message'
    return { message: `messages.${index}: ${message}` }
  }
  const texts = typeof content === 'string' ? [] : toList(content).map(toRecord).flatMap(textsOf)
  if (texts.includes('')) return { message: 'messages: text content blocks must be non-empty' }
  const whole = typeof content === 'string' && content !== '' ? [content] : texts
  if (whole.some((text) => text.trim() === '')) {
    return { message: 'messages: text content blocks must contain non-whitespace text' }
  }
  return undefined
}

/** The text of a block, or those within a tool result. */
function textsOf(block: JsonRecord): string[] {
  if (block.type === 'text') return [toText(block.text)]
  return block.type === 'tool_result' ? toList(block.content).map(toRecord).flatMap(textsOf) : []
}

const assistantOnly = new Set(['tool_use', 'thinking', 'redacted_thinking', 'server_tool_use'])
const userOnly = new Set(['tool_result', 'image', 'document', 'search_result'])

function roleFault(role: string, { type, message }: PlacedBlock): Fault | undefined {
  if (role === 'user' && assistantOnly.has(type)) {
    return { message: `messages.${message}: \`${type}\` blocks can only be in \`assistant\` messages` }
  }
  if (role === 'assistant' && userOnly.has(type)) {
    return { message: `messages.${message}: \`${type}\` blocks can only be in \`user\` messages` }
  }
  return undefined
}

function repeatedUseFault(turns: MessageTurn[]): Fault | undefined {
  const seen = new Set<unknown>()
  return firstFault(
    turns.flatMap((turn) => turn.blocks),
    (placed) => {
      if (placed.type !== 'tool_use') return undefined
      if (seen.has(placed.block.id)) return { message: `${placeOf(placed)}: \`tool_use\` ids must be unique` }
      seen.add(placed.block.id)
      return undefined
    },
  )
}

/** Every call is answered once, by results that begin the next turn, and there is no result without a call. */
function resultsFault(previous: MessageTurn | undefined, turn: MessageTurn): Fault | undefined {
  const calls = idsOf(previous?.blocks ?? [], 'tool_use', 'id')
  const results = turn.blocks.filter((placed) => placed.type === 'tool_result')
  const stray = results.find(({ block }) => !calls.includes(toText(block.tool_use_id)))
  if (stray !== undefined) {
    return {
      message: `${placeOf(stray)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${toText(stray.block.tool_use_id)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
    }
  }
  const leading = turn.blocks.findIndex((placed) => placed.type !== 'tool_result')
  const first = leading < 0 ? turn.blocks : turn.blocks.slice(0, leading)
  const answered = idsOf(first, 'tool_result', 'tool_use_id')
  const repeated = results.find(
    ({ block }, index) => results.findIndex((other) => other.block.tool_use_id === block.tool_use_id) < index,
  )
  if (repeated !== undefined) {
    return {
      message: `${placeOf(repeated)}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${toText(repeated.block.tool_use_id)}`,
    }
  }
  const missing = calls.filter((id) => !answered.includes(id))
  return missing.length > 0 ? unansweredFault(previous?.message ?? 0, missing) : undefined
}

function unansweredFault(message: number, ids: string[]): Fault {
  return {
    message: `messages.${message}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  }
}

function lastTurnFault(turns: MessageTurn[]): Fault | undefined {
  const last = turns.at(-1)
  if (last === undefined || last.role !== 'assistant') return undefined
  const calls = idsOf(last.blocks, 'tool_use', 'id')
  return calls.length > 0 ? unansweredFault(last.message, calls) : undefined
}

/** A server's tool has its result behind it in the same turn, unless the turn has been paused in between. */
function serverToolFault(turn: MessageTurn, isLast: boolean): Fault | undefined {
  const open = new Map<string, PlacedBlock>()
  for (const placed of turn.blocks) {
    const { type, block } = placed
    if (type === 'server_tool_use') open.set(toText(block.id), placed)
    if (!type.endsWith('_tool_result') || type === 'mcp_tool_result') continue
    if (!open.delete(toText(block.tool_use_id))) {
      return {
        message: `${placeOf(placed)}: unexpected \`tool_use_id\` found in \`${type}\` blocks: ${toText(block.tool_use_id)}. Each \`${type}\` block must have a corresponding \`server_tool_use\` block before it.`,
      }
    }
  }
  const [left] = open.values()
  if (left === undefined || isLast) return undefined
  const name = toText(left.block.name)
  return {
    message: `messages.${left.message}: \`${name}\` tool use with id \`${toText(left.block.id)}\` was found without a corresponding \`${name}_tool_result\` block`,
  }
}

function idsOf(blocks: PlacedBlock[], type: string, member: string): string[] {
  return blocks.filter((placed) => placed.type === type).map(({ block }) => toText(block[member]))
}
