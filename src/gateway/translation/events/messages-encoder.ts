import { NO_USAGE, type Usage } from '../../../governance/credits.ts'
import { encodeFrame } from '../../../lib/sse.ts'
import type { Json } from '../json.ts'
import type { EventEncoder, ModelEvent, StopReason } from '../model-events.ts'
import { messagesStopReason } from './stop-reasons.ts'
import { messagesUsage } from './usage-encoding.ts'

interface EncoderState {
  modelId: string
  /** What the open block is made of; a change of it closes the block. */
  open: string | null
  /** Index of the open block, or of the last one. */
  index: number
  usage: Usage
  stop: { reason: StopReason; sequence: string | null; explanation: string | null } | null
}

type Handlers = {
  [Type in ModelEvent['type']]: (state: EncoderState, event: Extract<ModelEvent, { type: Type }>) => Json[]
}

/** Tells events in the messages protocol. Only the first choice can be told there. */
export class MessagesEncoder implements EventEncoder {
  readonly #state: EncoderState

  /** @param modelId the model id as the caller named it. */
  constructor(modelId: string) {
    this.#state = { modelId, open: null, index: -1, usage: NO_USAGE, stop: null }
  }

  frames(event: ModelEvent): Uint8Array[] {
    return this.#events(event).map((data) => encodeFrame(String(data.type), data))
  }

  #events<Event extends ModelEvent>(event: Event): Json[] {
    if ('choice' in event && event.choice !== 0) return []
    const handler = HANDLERS[event.type] as (state: EncoderState, event: Event) => Json[]
    return handler(this.#state, event)
  }

  /** Folds the very events a stream would have carried, so that both forms of an answer agree. */
  answer(events: readonly ModelEvent[]): Json {
    const message: Json = {}
    const blocks: Json[] = []
    const inputs = new Map<number, string>()
    for (const data of events.flatMap((event) => this.#events(event))) {
      FOLDS[String(data.type)]?.({ message, blocks, inputs }, data)
    }
    for (const [index, json] of inputs) {
      const block = blocks[index]
      if (block) block.input = parsedInput(json)
    }
    return { ...message, content: blocks }
  }
}

const HANDLERS: Handlers = {
  start(state, event) {
    state.usage = event.usage ?? NO_USAGE
    const message = {
      id: event.id.startsWith('msg_') ? event.id : `msg_${event.id}`,
      type: 'message',
      role: 'assistant',
      model: state.modelId,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...messagesUsage(state.usage), output_tokens: event.usage?.output ?? 1 },
    }
    return [{ type: 'message_start', message }]
  },
  text: (state, event) => [
    ...open(state, 'text', { type: 'text', text: '' }),
    blockDelta(state, { type: 'text_delta', text: event.text }),
  ],
  // A refusal is text to the reader; that it was one is told by the stop reason.
  refusal: (state, event) => HANDLERS.text(state, { ...event, type: 'text' }),
  reasoning: (state, event) => [
    ...open(state, 'thinking', { type: 'thinking', thinking: '', signature: '' }),
    blockDelta(state, { type: 'thinking_delta', thinking: event.text }),
  ],
  reasoning_signature: (state, event) => [
    ...open(state, 'thinking', { type: 'thinking', thinking: '', signature: '' }),
    blockDelta(state, { type: 'signature_delta', signature: event.signature }),
    ...close(state),
  ],
  redacted_reasoning: (state, event) => [
    ...close(state),
    ...open(state, 'redacted', { type: 'redacted_thinking', data: event.data }),
    ...close(state),
  ],
  tool_call: (state, event) =>
    open(state, `call ${event.call}`, { type: 'tool_use', id: event.id, name: event.name, input: {} }),
  tool_arguments: (state, event) =>
    // Blocks follow each other: fragments of a call that was left have no block to stand in.
    state.open === `call ${event.call}`
      ? [blockDelta(state, { type: 'input_json_delta', partial_json: event.json })]
      : [],
  citation: (state, event) => [
    ...open(state, 'text', { type: 'text', text: '' }),
    blockDelta(state, { type: 'citations_delta', citation: event.citation }),
  ],
  stop(state, event) {
    state.stop = { reason: event.reason, sequence: event.stopSequence, explanation: event.explanation }
    return []
  },
  usage(state, event) {
    state.usage = event.usage
    return []
  },
  end: (state) => [
    ...close(state),
    {
      type: 'message_delta',
      delta: {
        stop_reason: messagesStopReason(state.stop?.reason ?? 'end'),
        stop_sequence: state.stop?.sequence ?? null,
      },
      usage: messagesUsage(state.usage),
    },
    { type: 'message_stop' },
  ],
}

/** Opens a block unless one of the same kind is open; the one before is closed first. */
function open(state: EncoderState, kind: string, block: Json): Json[] {
  if (state.open === kind) return []
  const closed = close(state)
  state.open = kind
  state.index++
  return [...closed, { type: 'content_block_start', index: state.index, content_block: block }]
}

function close(state: EncoderState): Json[] {
  if (state.open === null) return []
  state.open = null
  return [{ type: 'content_block_stop', index: state.index }]
}

const blockDelta = (state: EncoderState, delta: Json): Json => ({
  type: 'content_block_delta',
  index: state.index,
  delta,
})

interface Fold {
  message: Json
  blocks: Json[]
  inputs: Map<number, string>
}

const FOLDS: Record<string, (fold: Fold, data: Json) => void> = {
  message_start: (fold, data) => Object.assign(fold.message, data.message),
  content_block_start: (fold, data) => fold.blocks.push({ ...(data.content_block as Json) }),
  content_block_delta: (fold, data) => foldDelta(fold, Number(data.index), data.delta as Json),
  message_delta: (fold, data) => Object.assign(fold.message, data.delta, { usage: data.usage }),
}

function foldDelta({ blocks, inputs }: Fold, index: number, delta: Json): void {
  const block = blocks[index]
  if (!block) return
  if (delta.type === 'text_delta') block.text = `${block.text}${delta.text}`
  else if (delta.type === 'thinking_delta') block.thinking = `${block.thinking}${delta.thinking}`
  else if (delta.type === 'signature_delta') block.signature = delta.signature
  else if (delta.type === 'citations_delta') {
    block.citations = [...((block.citations as Json[] | undefined) ?? []), delta.citation as Json]
  } else if (delta.type === 'input_json_delta') {
    inputs.set(index, `${inputs.get(index) ?? ''}${delta.partial_json}`)
  }
}

/** A model can write arguments that are not JSON; the caller gets them as they are, where it can see them. */
function parsedInput(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return { invalid_json: json }
  }
}
