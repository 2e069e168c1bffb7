import { NO_USAGE } from '../../../calls/usage.ts'
import type { Usage } from '../../../ledger/audit-record.ts'
import { newId } from '../../../lib/ids.ts'
import { encodeFrame } from '../../../lib/sse.ts'
import type { Json } from '../../protocols/json.ts'
import {
  type EventEncoder,
  type EventHandlers,
  handleEvent,
  type ModelEvent,
  type StopReason,
} from '../model-events.ts'
import { JsonExtent } from './json-extent.ts'
import { messageOf } from './messages-answer.ts'
import { messagesStopReason } from './stop-reasons.ts'
import { finalUsage, startUsage } from './usage-encoding.ts'

interface Block {
  kind: 'text' | 'thinking' | 'redacted' | 'call'
  /** The number of its call. */
  call: number | null
  start: Json
  /** Deltas that wait until this block is the first. */
  waiting: Json[]
  /** Arguments of a call so far. */
  extent: JsonExtent
  /** Whether thinking has its signature: further thinking is another block. */
  sealed: boolean
  /** The block that follows it, when one does. */
  next: Block | null
}

interface EncoderState {
  modelId: string
  started: boolean
  /**
   * Blocks are sent one after the other, while events may alternate between tool calls. The first block is open; the
   * others wait until it is complete, each linked to the next, because there may be thousands.
   */
  first: Block | null
  last: Block | null
  /** Blocks of calls among them, by the number of the call. */
  calls: Map<number, Block>
  /** Whether the start of the first block has been sent. */
  live: boolean
  /** Blocks sent so far. */
  sent: number
  calledTools: boolean
  refusal: string
  usage: Usage
  stop: { reason: StopReason; sequence: string | null; explanation: string | null } | null
}

/** Renders events in the messages protocol, which has one choice: the first. For one call. */
export class MessagesEncoder implements EventEncoder {
  readonly #state: EncoderState

  /** @param modelId the model id as the caller named it. */
  constructor(modelId: string) {
    this.#state = {
      modelId,
      started: false,
      first: null,
      last: null,
      calls: new Map(),
      live: false,
      sent: 0,
      calledTools: false,
      refusal: '',
      usage: NO_USAGE,
      stop: null,
    }
  }

  frames(event: ModelEvent): Uint8Array[] {
    return this.#events(event).map((data) => encodeFrame(String(data.type), data))
  }

  /** Joins the events that a stream would have carried, so that both forms of an answer agree. */
  answer(events: readonly ModelEvent[]): Json {
    return messageOf(events.flatMap((event) => this.#events(event)))
  }

  #events(event: ModelEvent): Json[] {
    const isOfOtherChoice = 'choice' in event && event.choice !== 0
    return isOfOtherChoice ? [] : handleEvent(HANDLERS, this.#state, event)
  }
}

const HANDLERS: EventHandlers<EncoderState> = {
  start(state, event) {
    // A second one makes stream helpers throw.
    if (state.started) return []
    state.started = true
    state.usage = event.usage ?? NO_USAGE
    return [{ type: 'message_start', message: emptyMessage(state, event.id, event.usage) }]
  },
  text: (state, { text }) => inText(state, { type: 'text_delta', text }),
  // A refusal becomes text; the stop reason marks it.
  refusal(state, { text }) {
    state.refusal += text
    return inText(state, { type: 'text_delta', text })
  },
  reasoning: (state, { text }) => inThinking(state, { type: 'thinking_delta', thinking: text }),
  reasoning_signature(state, { signature }) {
    const events = inThinking(state, { type: 'signature_delta', signature })
    if (state.last) state.last.sealed = true
    return events
  },
  redacted_reasoning: (state, { data }) => addBlock(state, 'redacted', { type: 'redacted_thinking', data }),
  tool_call(state, { call, id, name }) {
    state.calledTools = true
    return addBlock(state, 'call', { type: 'tool_use', id, name, input: {} }, call)
  },
  tool_arguments(state, { call, json }) {
    const block = state.calls.get(call)
    if (!block) return []
    block.extent.push(json)
    return enqueue(state, block, { type: 'input_json_delta', partial_json: json })
  },
  citation: (state, { citation }) => inText(state, { type: 'citations_delta', citation }),
  stop(state, event) {
    state.stop = { reason: event.reason, sequence: event.stopSequence, explanation: event.explanation }
    return []
  },
  usage(state, event) {
    state.usage = event.usage
    return []
  },
  end(state) {
    const blocks = [...advance(state, true), ...(state.live ? [stopOf(state)] : [])]
    return [
      ...blocks,
      { type: 'message_delta', delta: finalDelta(state), usage: finalUsage(state.usage) },
      { type: 'message_stop' },
    ]
  },
}

const emptyMessage = (state: EncoderState, id: string, usage: Usage | null): Json => ({
  id: id.startsWith('msg_') ? id : id === '' ? newId('msg') : `msg_${id}`,
  type: 'message',
  role: 'assistant',
  model: state.modelId,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  stop_details: null,
  usage: startUsage(usage),
})

/** The stop reason. Without one from the upstream it follows from the content. */
function finalDelta(state: EncoderState): Json {
  const { stop, calledTools, refusal } = state
  const given = stop?.reason ?? (calledTools ? 'tool_calls' : 'end')
  // Chat completions end a refusal of the model itself with `stop`.
  const reason = given === 'end' && refusal !== '' ? 'refusal' : given
  const explanation = stop?.explanation ?? (refusal || null)
  return {
    stop_reason: messagesStopReason(reason),
    stop_sequence: stop?.sequence ?? null,
    stop_details: reason === 'refusal' ? { type: 'refusal', category: null, explanation } : null,
  }
}

function inText(state: EncoderState, delta: Json): Json[] {
  const { last } = state
  if (last?.kind === 'text') return enqueue(state, last, delta)
  return addBlock(state, 'text', { type: 'text', text: '' }, null, delta)
}

/**
 * Reasoning of another family gets an empty signature, by which a request that sends the block back distinguishes it
 * from the vendor's own.
 */
function inThinking(state: EncoderState, delta: Json): Json[] {
  const { last } = state
  if (last?.kind === 'thinking' && !last.sealed) return enqueue(state, last, delta)
  return addBlock(state, 'thinking', { type: 'thinking', thinking: '', signature: '' }, null, delta)
}

function addBlock(
  state: EncoderState,
  kind: Block['kind'],
  start: Json,
  call: number | null = null,
  ...waiting: Json[]
): Json[] {
  const block: Block = { kind, call, start, waiting, extent: new JsonExtent(), sealed: false, next: null }
  if (call !== null && !state.calls.has(call)) state.calls.set(call, block)
  if (state.last) state.last.next = block
  else state.first = block
  state.last = block
  return advance(state, false)
}

function enqueue(state: EncoderState, block: Block, delta: Json): Json[] {
  block.waiting.push(delta)
  return advance(state, false)
}

/** Sends what the order of blocks allows. @param ending whether all blocks are complete. */
function advance(state: EncoderState, ending: boolean): Json[] {
  const events: Json[] = []
  for (let block = state.first; block; block = state.first) {
    if (!state.live) {
      events.push({ type: 'content_block_start', index: state.sent, content_block: block.start })
    }
    state.live = true
    for (const delta of block.waiting.splice(0)) {
      events.push({ type: 'content_block_delta', index: state.sent, delta })
    }
    const over = block.call === null || block.extent.complete || ending
    if (!block.next || !over) break
    events.push(stopOf(state))
    if (block.call !== null) state.calls.delete(block.call)
    state.first = block.next
  }
  return events
}

function stopOf(state: EncoderState): Json {
  state.live = false
  return { type: 'content_block_stop', index: state.sent++ }
}
