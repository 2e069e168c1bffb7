import type { Usage } from '../../../governance/credits.ts'
import { encodeFrame } from '../../../lib/sse.ts'
import type { Json } from '../json.ts'
import type { EventEncoder, ModelEvent } from '../model-events.ts'
import { chatFinishReason } from './stop-reasons.ts'
import { chatUsage } from './usage-encoding.ts'

export interface ChatEncoderOptions {
  /** The model id as the caller named it. */
  modelId: string
  /** Whether the caller asked for usage on its stream. */
  usageAsked: boolean
  /** Seconds since the epoch, for upstreams that tell no time. */
  nowSeconds: number
}

interface EncoderState {
  options: ChatEncoderOptions
  /** Members that every chunk repeats. */
  head: Json
  /** Choices that have had their first delta, which carries the role. */
  begun: Set<number>
  usage: Usage | null
}

type Handlers = {
  [Type in ModelEvent['type']]: (state: EncoderState, event: Extract<ModelEvent, { type: Type }>) => Json[]
}

/** Tells events as chat completion chunks, or as one chat completion. */
export class ChatEncoder implements EventEncoder {
  readonly #state: EncoderState

  constructor(options: ChatEncoderOptions) {
    this.#state = { options, head: {}, begun: new Set(), usage: null }
  }

  frames(event: ModelEvent): Uint8Array[] {
    const chunks = this.#chunks(event).map((chunk) => encodeFrame(null, { ...this.#state.head, ...chunk }))
    return event.type === 'end' ? [...chunks, encodeFrame(null, '[DONE]')] : chunks
  }

  #chunks<Event extends ModelEvent>(event: Event): Json[] {
    const handler = HANDLERS[event.type] as (state: EncoderState, event: Event) => Json[]
    return handler(this.#state, event)
  }

  answer(events: readonly ModelEvent[]): Json {
    const choices = new Map<number, WholeChoice>()
    let usage: Usage | null = null
    for (const event of events) {
      if (event.type === 'start') HANDLERS.start(this.#state, event)
      else if (event.type === 'usage') usage = event.usage
      else if ('choice' in event) addToChoice(choiceOf(choices, event.choice), event)
    }
    return {
      ...this.#state.head,
      object: 'chat.completion',
      choices: [...choices.entries()].sort(([left], [right]) => left - right).map(wholeChoice),
      ...(usage ? { usage: chatUsage(usage) } : {}),
    }
  }
}

const HANDLERS: Handlers = {
  start(state, event) {
    state.head = {
      id: event.id.startsWith('chatcmpl') ? event.id : `chatcmpl-${event.id}`,
      object: 'chat.completion.chunk',
      created: event.createdSeconds ?? state.options.nowSeconds,
      model: state.options.modelId,
    }
    state.usage = event.usage
    return begin(state, 0)
  },
  text: (state, event) => delta(state, event.choice, { content: event.text }),
  refusal: (state, event) => delta(state, event.choice, { refusal: event.text }),
  reasoning: (state, event) => delta(state, event.choice, { reasoning_content: event.text }),
  // Proofs and sealed reasoning mean something to their own family only; chat completions cannot carry them back.
  reasoning_signature: () => [],
  redacted_reasoning: () => [],
  tool_call: (state, { choice, call, id, name }) =>
    delta(state, choice, {
      tool_calls: [{ index: call, id, type: 'function', function: { name, arguments: '' } }],
    }),
  tool_arguments: (state, { choice, call, json }) =>
    delta(state, choice, { tool_calls: [{ index: call, function: { arguments: json } }] }),
  citation(state, { choice, citation }) {
    const annotation = annotationOf(citation)
    return annotation ? delta(state, choice, { annotations: [annotation] }) : []
  },
  stop(state, { choice, reason, explanation }) {
    const refused = explanation === null ? [] : delta(state, choice, { refusal: explanation })
    return [...begin(state, choice), ...refused, choiceChunk(choice, {}, chatFinishReason(reason))]
  },
  usage(state, event) {
    state.usage = event.usage
    return []
  },
  end: (state) =>
    state.usage && state.options.usageAsked ? [{ choices: [], usage: chatUsage(state.usage) }] : [],
}

/** The first delta of a choice carries the role: stream helpers refuse a message without one. */
function begin(state: EncoderState, choice: number): Json[] {
  if (state.begun.has(choice)) return []
  state.begun.add(choice)
  return [choiceChunk(choice, { role: 'assistant', content: '' }, null)]
}

const delta = (state: EncoderState, choice: number, part: Json): Json[] => [
  ...begin(state, choice),
  choiceChunk(choice, part, null),
]

const choiceChunk = (index: number, part: Json, finishReason: string | null): Json => ({
  choices: [{ index, delta: part, logprobs: null, finish_reason: finishReason }],
})

/** Web sources have a place in chat completions; citations of documents have none and are dropped. */
function annotationOf(citation: Json): Json | null {
  if (typeof citation.url !== 'string') return null
  return {
    type: 'url_citation',
    url_citation: {
      url: citation.url,
      title: typeof citation.title === 'string' ? citation.title : '',
      start_index: 0,
      end_index: 0,
    },
  }
}

interface WholeChoice {
  text: string
  refusal: string
  reasoning: string
  calls: Array<{ id: string; name: string; json: string }>
  annotations: Json[]
  finishReason: string
}

function choiceOf(choices: Map<number, WholeChoice>, index: number): WholeChoice {
  const known = choices.get(index)
  if (known) return known
  const choice = { text: '', refusal: '', reasoning: '', calls: [], annotations: [], finishReason: 'stop' }
  choices.set(index, choice)
  return choice
}

function addToChoice(choice: WholeChoice, event: Extract<ModelEvent, { choice: number }>): void {
  if (event.type === 'text') choice.text += event.text
  else if (event.type === 'refusal') choice.refusal += event.text
  else if (event.type === 'reasoning') choice.reasoning += event.text
  else if (event.type === 'tool_call') choice.calls[event.call] = { id: event.id, name: event.name, json: '' }
  else if (event.type === 'tool_arguments') {
    const call = choice.calls[event.call]
    if (call) call.json += event.json
  } else if (event.type === 'citation') {
    const annotation = annotationOf(event.citation)
    if (annotation) choice.annotations.push(annotation)
  } else if (event.type === 'stop') {
    choice.finishReason = chatFinishReason(event.reason)
    choice.refusal += event.explanation ?? ''
  }
}

function wholeChoice([index, choice]: [number, WholeChoice]): Json {
  const calls = choice.calls.map(({ id, name, json }) => ({
    id,
    type: 'function',
    function: { name, arguments: json === '' ? '{}' : json },
  }))
  return {
    index,
    message: {
      role: 'assistant',
      content: choice.text === '' && calls.length > 0 ? null : choice.text,
      refusal: choice.refusal === '' ? null : choice.refusal,
      ...(choice.reasoning === '' ? {} : { reasoning_content: choice.reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
      ...(choice.annotations.length === 0 ? {} : { annotations: choice.annotations }),
    },
    logprobs: null,
    finish_reason: choice.finishReason,
  }
}
