import type { Usage } from '../../../ledger/audit-record.ts'
import { randomBase62 } from '../../../lib/ids.ts'
import { encodeFrame } from '../../../lib/sse.ts'
import { type Json, textOf } from '../../protocols/json.ts'
import {
  type EventEncoder,
  type EventHandlers,
  handleEvent,
  type ModelEvent,
  type StopReason,
} from '../model-events.ts'
import type { ChatEncoderOptions } from './chat-encoder.ts'
import { completionFinishReason } from './stop-reasons.ts'
import { chatUsage } from './usage-encoding.ts'

interface EncoderState {
  options: ChatEncoderOptions
  /** Members that every chunk repeats. */
  head: Json
  begun: Set<number>
  finished: Set<number>
  usage: Usage | null
}

/** Renders events in the shape of legacy completions (https://platform.openai.com/docs/api-reference/completions). */
export class CompletionEncoder implements EventEncoder {
  readonly #state: EncoderState

  constructor(options: ChatEncoderOptions) {
    this.#state = { options, head: {}, begun: new Set(), finished: new Set(), usage: null }
  }

  frames(event: ModelEvent): Uint8Array[] {
    const chunks = handleEvent(HANDLERS, this.#state, event).map((choice) => this.#chunk([choice], {}))
    if (event.type !== 'end') return chunks
    const { usage, options } = this.#state
    if (usage && options.usageRequested) chunks.push(this.#chunk([], { usage: chatUsage(usage) }))
    return [...chunks, encodeFrame(null, '[DONE]')]
  }

  /** Joins the choices that a stream would have carried, so that both forms of an answer agree. */
  answer(events: readonly ModelEvent[]): Json {
    const choices = new Map<number, Json>()
    for (const part of events.flatMap((event) => handleEvent(HANDLERS, this.#state, event))) {
      const index = Number(part.index)
      const before = choices.get(index)
      choices.set(index, before ? { ...part, text: textOf(before.text) + textOf(part.text) } : part)
    }
    const { head, usage } = this.#state
    return {
      ...head,
      choices: [...choices].sort(([left], [right]) => left - right).map(([, choice]) => choice),
      ...(usage ? { usage: chatUsage(usage) } : {}),
    }
  }

  #chunk(choices: Json[], more: Json): Uint8Array {
    return encodeFrame(null, { ...this.#state.head, choices, ...more })
  }
}

const HANDLERS: EventHandlers<EncoderState> = {
  start(state, event) {
    state.head = {
      id: `cmpl-${event.id.replace(/^chatcmpl-/, '') || randomBase62(22)}`,
      object: 'text_completion',
      created: event.createdSeconds ?? state.options.nowSeconds,
      model: state.options.modelId,
    }
    state.usage = event.usage
    return []
  },
  text: (state, { choice, text }) => textPart(state, choice, text),
  // A refusal becomes text; the finish reason marks it.
  refusal: (state, { choice, text }) => textPart(state, choice, text),
  // Completions have no reasoning, sources and tools, and their requests cannot request them.
  reasoning: () => [],
  reasoning_signature: () => [],
  redacted_reasoning: () => [],
  citation: () => [],
  tool_call: () => [],
  tool_arguments: () => [],
  stop: (state, { choice, reason }) => finish(state, choice, reason),
  usage(state, event) {
    state.usage = event.usage
    return []
  },
  end: (state) => [...new Set([0, ...state.begun])].flatMap((choice) => finish(state, choice, 'end')),
}

function textPart(state: EncoderState, choice: number, text: string): Json[] {
  state.begun.add(choice)
  return [part(choice, text, null)]
}

/** The end of a choice; once, even if the upstream repeats it. */
function finish(state: EncoderState, choice: number, reason: StopReason): Json[] {
  if (state.finished.has(choice)) return []
  state.finished.add(choice)
  return [part(choice, '', completionFinishReason(reason))]
}

const part = (index: number, text: string, finishReason: string | null): Json => ({
  text,
  index,
  logprobs: null,
  finish_reason: finishReason,
})
