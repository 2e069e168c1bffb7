import type { Usage } from '../../../governance/credits.ts'
import { usageOfMessages } from '../../protocols/usage.ts'
import { type Json, objectOf, textOf } from '../json.ts'
import type { EventDecoder, ModelEvent } from '../model-events.ts'
import { stopReasonOfMessages } from './stop-reasons.ts'

interface DecoderState {
  usage: Usage | null
  /** Tool calls by the index of their block: blocks count text too, calls are numbered apart. */
  calls: Map<number, number>
}

type Handler = (state: DecoderState, data: Json) => ModelEvent[]

/** Reads the messages protocol, events or whole. */
export class MessagesDecoder implements EventDecoder {
  readonly #state: DecoderState = { usage: null, calls: new Map() }

  frame(event: string | null, data: Json): ModelEvent[] {
    return EVENTS[event ?? textOf(data.type)]?.(this.#state, data) ?? []
  }

  answer(body: Json): ModelEvent[] {
    const blocks = Array.isArray(body.content) ? body.content.map(objectOf) : []
    return [
      ...this.frame('message_start', { message: body }),
      ...blocks.flatMap((block, index) => this.frame('content_block_start', { index, content_block: block })),
      ...this.frame('message_delta', { delta: body, usage: body.usage }),
      ...this.frame('message_stop', {}),
    ]
  }
}

/** Events that are not listed (`ping`, `content_block_stop`, later ones) carry nothing that another protocol can say. */
const EVENTS: Record<string, Handler> = {
  message_start(state, data) {
    const message = objectOf(data.message)
    state.usage = usageOfMessages(message.usage, null)
    return [
      {
        type: 'start',
        id: textOf(message.id),
        model: textOf(message.model),
        createdSeconds: null,
        usage: state.usage,
      },
    ]
  },
  content_block_start(state, data) {
    const block = objectOf(data.content_block)
    return BLOCKS[textOf(block.type)]?.(state, { ...block, index: data.index }) ?? []
  },
  content_block_delta(state, data) {
    const delta = objectOf(data.delta)
    return DELTAS[textOf(delta.type)]?.(state, { ...delta, index: data.index }) ?? []
  },
  message_delta(state, data) {
    const delta = objectOf(data.delta)
    state.usage = usageOfMessages(data.usage, state.usage) ?? state.usage
    const events: ModelEvent[] = []
    if (typeof delta.stop_reason === 'string') {
      events.push({
        type: 'stop',
        choice: 0,
        reason: stopReasonOfMessages(delta.stop_reason),
        stopSequence: textOf(delta.stop_sequence) || null,
        explanation: textOf(objectOf(delta.stop_details).explanation) || null,
      })
    }
    return state.usage ? [...events, { type: 'usage', usage: state.usage }] : events
  },
  message_stop: () => [{ type: 'end' }],
}

/** A block as it opens: empty on streams, whole in an answer. */
const BLOCKS: Record<string, Handler> = {
  text(_state, block) {
    const citations = Array.isArray(block.citations) ? block.citations.map(objectOf) : []
    return [
      ...spoken(textOf(block.text)),
      ...citations.map((citation): ModelEvent => ({ type: 'citation', choice: 0, citation })),
    ]
  },
  thinking(_state, block) {
    return [...reasoned(textOf(block.thinking)), ...signed(textOf(block.signature))]
  },
  redacted_thinking: (_state, block) => [{ type: 'redacted_reasoning', choice: 0, data: textOf(block.data) }],
  tool_use(state, block) {
    const call = state.calls.size
    state.calls.set(Number(block.index), call)
    const started: ModelEvent = {
      type: 'tool_call',
      choice: 0,
      call,
      id: textOf(block.id),
      name: textOf(block.name),
    }
    // On a stream the input is `{}` here and follows as fragments of its text.
    const whole = Object.keys(objectOf(block.input)).length > 0
    return whole
      ? [started, { type: 'tool_arguments', choice: 0, call, json: JSON.stringify(block.input) }]
      : [started]
  },
}

const DELTAS: Record<string, Handler> = {
  text_delta: (_state, delta) => spoken(textOf(delta.text)),
  thinking_delta: (_state, delta) => reasoned(textOf(delta.thinking)),
  signature_delta: (_state, delta) => signed(textOf(delta.signature)),
  citations_delta: (_state, delta) => [{ type: 'citation', choice: 0, citation: objectOf(delta.citation) }],
  input_json_delta(state, delta) {
    const call = state.calls.get(Number(delta.index))
    const json = textOf(delta.partial_json)
    return call === undefined || json === '' ? [] : [{ type: 'tool_arguments', choice: 0, call, json }]
  },
}

const spoken = (text: string): ModelEvent[] => (text === '' ? [] : [{ type: 'text', choice: 0, text }])
const reasoned = (text: string): ModelEvent[] => (text === '' ? [] : [{ type: 'reasoning', choice: 0, text }])
const signed = (signature: string): ModelEvent[] =>
  signature === '' ? [] : [{ type: 'reasoning_signature', choice: 0, signature }]
