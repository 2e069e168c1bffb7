import type { Usage } from '../../../ledger/audit-record.ts'
import { entryOf, type Json, listOf, objectOf, textOf } from '../../protocols/json.ts'
import { correctedUsage } from '../../protocols/plausible-usage.ts'
import { usageOfMessages } from '../../protocols/reported-usage.ts'
import type { EventDecoder, ModelEvent } from '../model-events.ts'
import { stopReasonOfMessages } from './stop-reasons.ts'

/** A block that has not ended. */
interface Block {
  /** The number of its tool call, null for blocks that are none. */
  call: number | null
  /** Input that came with the start of the block; fragments replace it. */
  input: Json | null
  textLength: number
  /** Held back until their text is complete: citations arrive before it or within it. */
  citations: Json[]
  /** Held back to the end of the block, because a later signature replaces an earlier one. */
  signature: string
}

interface DecoderState {
  usage: Usage | null
  calls: number
  blocks: Map<number, Block>
  /** Blocks other than calls that may hold something back. */
  open: Set<Block>
}

type Handler = (state: DecoderState, data: Json) => ModelEvent[]
type BlockHandler = (block: Block, data: Json) => ModelEvent[]

/** Reads the messages protocol, events or whole. */
export class MessagesDecoder implements EventDecoder {
  readonly #state: DecoderState = { usage: null, calls: 0, blocks: new Map(), open: new Set() }

  frame(event: string | null, data: Json): ModelEvent[] {
    return entryOf(EVENTS, event || textOf(data.type))?.(this.#state, data) ?? []
  }

  answer(body: Json): ModelEvent[] {
    return [
      ...this.frame('message_start', { message: body }),
      ...listOf(body.content).flatMap((block, index) => [
        ...this.frame('content_block_start', { index, content_block: block }),
        ...this.frame('content_block_stop', { index }),
      ]),
      ...this.frame('message_delta', { delta: body, usage: body.usage }),
    ]
  }
}

/** Events that are not listed (`ping`, later ones) have no equivalent in another protocol. */
const EVENTS: Record<string, Handler> = {
  message_start: messageStart,
  content_block_start: blockStart,
  content_block_delta: blockDelta,
  content_block_stop: (state, data) => blockStop(state, Number(data.index)),
  message_delta: messageDelta,
}

function messageStart(state: DecoderState, data: Json): ModelEvent[] {
  const message = objectOf(data.message)
  state.usage = usageOfMessages(message.usage, null)
  const usage = state.usage && correctedUsage(state.usage).usage
  const [id, model] = [textOf(message.id), textOf(message.model)]
  return [{ type: 'start', id, model, createdSeconds: null, usage }]
}

/**
 * Blocks of other types have no equivalent. The text after calls of the provider's own tools has their result
 * (`server_tool_use`, `*_tool_result`, `compaction`).
 */
function blockStart(state: DecoderState, data: Json): ModelEvent[] {
  const index = Number(data.index)
  // Some servers leave `content_block_stop` out, and some give every block the same index.
  const flushed = [...[...state.open].flatMap(flushBlock), ...blockStop(state, index)]
  state.open.clear()
  const content = objectOf(data.content_block)
  const block = newBlock(state, index, content.type === 'tool_use' ? state.calls++ : null)
  return [...flushed, ...(entryOf(BLOCKS, textOf(content.type))?.(block, content) ?? [])]
}

function newBlock(state: DecoderState, index: number, call: number | null): Block {
  const block: Block = { call, input: null, textLength: 0, citations: [], signature: '' }
  state.blocks.set(index, block)
  if (call === null) state.open.add(block)
  return block
}

/** Text is read even where the upstream omits the start of its block. */
function blockDelta(state: DecoderState, data: Json): ModelEvent[] {
  const delta = objectOf(data.delta)
  const index = Number(data.index)
  const block = state.blocks.get(index) ?? newBlock(state, index, null)
  if (block.call === null) state.open.add(block)
  return entryOf(DELTAS, textOf(delta.type))?.(block, delta) ?? []
}

function blockStop(state: DecoderState, index: number): ModelEvent[] {
  const block = state.blocks.get(index)
  if (!block) return []
  state.blocks.delete(index)
  state.open.delete(block)
  return flushBlock(block)
}

function messageDelta(state: DecoderState, data: Json): ModelEvent[] {
  const delta = objectOf(data.delta)
  state.usage = usageOfMessages(data.usage, state.usage) ?? state.usage
  const events = [...state.blocks.keys()].flatMap((index) => blockStop(state, index))
  if (typeof delta.stop_reason === 'string') {
    events.push({
      type: 'stop',
      choice: 0,
      reason: stopReasonOfMessages(delta.stop_reason),
      stopSequence: textOf(delta.stop_sequence) || null,
      explanation: textOf(objectOf(delta.stop_details).explanation) || null,
    })
  }
  return state.usage ? [...events, { type: 'usage', usage: correctedUsage(state.usage).usage }] : events
}

/** A block as it begins: empty on the vendor's streams, whole in answers and on some servers' streams. */
const BLOCKS: Record<string, BlockHandler> = {
  text(block, content) {
    block.citations = listOf(content.citations)
    return textEvents(block, textOf(content.text))
  },
  thinking(block, content) {
    block.signature = textOf(content.signature)
    return reasoningEvents(textOf(content.thinking))
  },
  redacted_thinking: (_block, content) => [
    { type: 'redacted_reasoning', choice: 0, data: textOf(content.data) },
  ],
  tool_use(block, content) {
    block.input = objectOf(content.input)
    const [id, name] = [textOf(content.id), textOf(content.name)]
    return [{ type: 'tool_call', choice: 0, call: block.call ?? 0, id, name }]
  },
}

const DELTAS: Record<string, BlockHandler> = {
  text_delta: (block, delta) => textEvents(block, textOf(delta.text)),
  thinking_delta: (_block, delta) => reasoningEvents(textOf(delta.thinking)),
  signature_delta(block, delta) {
    block.signature = textOf(delta.signature)
    return []
  },
  citations_delta(block, delta) {
    block.citations.push(objectOf(delta.citation))
    return []
  },
  input_json_delta(block, delta) {
    const json = textOf(delta.partial_json)
    if (block.call === null || json === '') return []
    block.input = null
    return [{ type: 'tool_arguments', choice: 0, call: block.call, json }]
  },
}

/** Emits what was held back to the end of a block. */
function flushBlock(block: Block): ModelEvent[] {
  const { citations, signature, input, call, textLength } = block
  Object.assign(block, { citations: [], signature: '', input: null })
  const events = citations.map(
    (citation): ModelEvent => ({ type: 'citation', choice: 0, citation, length: textLength }),
  )
  if (signature !== '') events.push({ type: 'reasoning_signature', choice: 0, signature })
  // A call without arguments has none of them on a stream; in other protocols it has an empty object.
  if (call !== null && input) {
    events.push({ type: 'tool_arguments', choice: 0, call, json: JSON.stringify(input) })
  }
  return events
}

function textEvents(block: Block, text: string): ModelEvent[] {
  block.textLength += text.length
  return text === '' ? [] : [{ type: 'text', choice: 0, text }]
}

const reasoningEvents = (text: string): ModelEvent[] =>
  text === '' ? [] : [{ type: 'reasoning', choice: 0, text }]
