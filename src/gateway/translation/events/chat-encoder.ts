import type { Usage } from '../../../ledger/audit-record.ts'
import { randomBase62 } from '../../../lib/ids.ts'
import { encodeFrame } from '../../../lib/sse.ts'
import { type Json, objectOf } from '../../protocols/json.ts'
import {
  type EventEncoder,
  type EventHandlers,
  handleEvent,
  type ModelEvent,
  type StopReason,
} from '../model-events.ts'
import { chatAnswer } from './chat-answer.ts'
import { chatFinishReason } from './stop-reasons.ts'
import { chatUsage } from './usage-encoding.ts'

export interface ChatEncoderOptions {
  /** The model id as the caller named it. */
  modelId: string
  /** Whether the caller requested usage on its stream. */
  usageRequested: boolean
  /** Seconds since the epoch, for upstreams that send no time. */
  nowSeconds: number
}

interface Choice {
  /** Whether the first delta of the choice has been sent. */
  begun: boolean
  /** Characters of text so far: citations refer to positions in it. */
  textLength: number
  refused: boolean
  /** Calls in the order in which they were sent, and whether arguments of them were. */
  calls: Map<number, { index: number; argued: boolean }>
  annotations: Json[]
  finished: boolean
}

interface EncoderState {
  options: ChatEncoderOptions
  /** Members that every chunk repeats. */
  head: Json
  choices: Map<number, Choice>
  usage: Usage | null
}

/** Renders events as chat completion chunks, or as one chat completion. For one call. */
export class ChatEncoder implements EventEncoder {
  readonly #state: EncoderState

  constructor(options: ChatEncoderOptions) {
    this.#state = { options, head: {}, choices: new Map(), usage: null }
  }

  frames(event: ModelEvent): Uint8Array[] {
    const chunks = this.#chunks(event)
    const { usage, options, head } = this.#state
    if (event.type === 'end' && usage && options.usageRequested) {
      chunks.push({ ...head, choices: [], usage: chatUsage(usage) })
    }
    const frames = chunks.map((chunk) => encodeFrame(null, chunk))
    return event.type === 'end' ? [...frames, encodeFrame(null, '[DONE]')] : frames
  }

  /** Joins the chunks that a stream would have carried, so that both forms of an answer agree. */
  answer(events: readonly ModelEvent[]): Json {
    const chunks = events.flatMap((event) => this.#chunks(event))
    const { usage } = this.#state
    return { ...chatAnswer(chunks), ...(usage ? { usage: chatUsage(usage) } : {}) }
  }

  #chunks(event: ModelEvent): Json[] {
    const choices = handleEvent(HANDLERS, this.#state, event)
    return choices.map((choice) => ({ ...this.#state.head, choices: [choice] }))
  }
}

/** The choices of the chunks that each event becomes. */
const HANDLERS: EventHandlers<EncoderState> = {
  start(state, event) {
    state.head = {
      id: event.id.startsWith('chatcmpl') ? event.id : `chatcmpl-${event.id || randomBase62(22)}`,
      object: 'chat.completion.chunk',
      created: event.createdSeconds ?? state.options.nowSeconds,
      model: state.options.modelId,
    }
    state.usage = event.usage
    return begun(state, 0)
  },
  text(state, event) {
    choiceOf(state, event.choice).textLength += event.text.length
    return delta(state, event.choice, { content: event.text })
  },
  refusal(state, event) {
    choiceOf(state, event.choice).refused = true
    return delta(state, event.choice, { refusal: event.text })
  },
  reasoning: (state, event) => delta(state, event.choice, { reasoning_content: event.text }),
  // Signatures are dropped: only their own family can read them, and chat completions have no place to send them back in.
  reasoning_signature: () => [],
  redacted_reasoning: () => [],
  tool_call(state, { choice, call, id, name, signature }) {
    const { calls } = choiceOf(state, choice)
    const index = calls.size
    calls.set(call, { index, argued: false })
    return delta(state, choice, {
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' }, ...signed(signature) }],
    })
  },
  tool_arguments(state, { choice, call, json }) {
    const known = choiceOf(state, choice).calls.get(call)
    if (!known) return []
    known.argued = true
    return delta(state, choice, { tool_calls: [{ index: known.index, function: { arguments: json } }] })
  },
  citation(state, { choice, citation, length }) {
    const { textLength, annotations } = choiceOf(state, choice)
    const annotation = annotationOf(citation, Math.max(0, textLength - length), textLength)
    if (annotation) annotations.push(annotation)
    return []
  },
  stop: (state, { choice, reason, explanation }) => finish(state, choice, reason, explanation),
  usage(state, event) {
    state.usage = event.usage
    return []
  },
  end: (state) =>
    [...state.choices].flatMap(([choice, { calls }]) =>
      finish(state, choice, calls.size > 0 ? 'tool_calls' : 'end', null),
    ),
}

/** The place of Gemini's own endpoint of this protocol (https://ai.google.dev/gemini-api/docs/thought-signatures). */
const signed = (signature: string | undefined): Json =>
  signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } }

function choiceOf(state: EncoderState, index: number): Choice {
  const known = state.choices.get(index)
  if (known) return known
  const choice = {
    begun: false,
    textLength: 0,
    refused: false,
    calls: new Map(),
    annotations: [],
    finished: false,
  }
  state.choices.set(index, choice)
  return choice
}

/** The first delta of a choice carries the role: stream helpers refuse a message without one. */
function begun(state: EncoderState, index: number): Json[] {
  const choice = choiceOf(state, index)
  if (choice.begun) return []
  choice.begun = true
  return [choiceChunk(index, { role: 'assistant', content: '' }, null)]
}

const delta = (state: EncoderState, index: number, part: Json): Json[] => [
  ...begun(state, index),
  choiceChunk(index, part, null),
]

/** The last chunks of a choice; once, even if the upstream repeats its end. */
function finish(state: EncoderState, index: number, reason: StopReason, explanation: string | null): Json[] {
  const first = begun(state, index)
  const choice = choiceOf(state, index)
  if (choice.finished) return first
  choice.finished = true
  const parts: Json[] = []
  // Callers parse the arguments of a call, and an empty text is not JSON.
  const silent = [...choice.calls.values()].filter((call) => !call.argued)
  for (const call of silent)
    parts.push({ tool_calls: [{ index: call.index, function: { arguments: '{}' } }] })
  // Annotations are sent in one piece: stream helpers keep the last list, they do not join lists.
  if (choice.annotations.length > 0) parts.push({ annotations: choice.annotations })
  if (explanation !== null && !choice.refused) parts.push({ refusal: explanation })
  const last = choiceChunk(index, {}, chatFinishReason(reason))
  return [...first, ...parts.map((part) => choiceChunk(index, part, null)), last]
}

const choiceChunk = (index: number, delta: Json, finishReason: string | null): Json => ({
  index,
  delta,
  logprobs: null,
  finish_reason: finishReason,
})

/** Chat completions have annotations for web sources; sources in documents are dropped. */
function annotationOf(citation: Json, start: number, end: number): Json | null {
  const { url, title } = objectOf(citation)
  if (typeof url !== 'string') return null
  return {
    type: 'url_citation',
    url_citation: { url, title: typeof title === 'string' ? title : '', start_index: start, end_index: end },
  }
}
