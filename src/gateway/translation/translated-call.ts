import { addUsage, type Usage } from '../../governance/credits.ts'
import { invalidRequest } from '../../lib/api-error.ts'
import { holdBuffer } from '../../lib/buffer-holds.ts'
import type { SseFrame } from '../../lib/sse.ts'
import { AssistantContent } from './events/assistant-content.ts'
import { ChatDecoder } from './events/chat-decoder.ts'
import { ChatEncoder } from './events/chat-encoder.ts'
import { CompletionEncoder } from './events/completion-encoder.ts'
import { ModelEventEncoder } from './events/event-encoder.ts'
import { FenceStripper } from './events/fence-stripper.ts'
import { MessagesDecoder } from './events/messages-decoder.ts'
import { MessagesEncoder } from './events/messages-encoder.ts'
import { type Json, listOf, objectOf, parseJson } from './json.ts'
import type { EventDecoder, EventEncoder, ModelEvent } from './model-events.ts'
import { chatToMessages } from './requests/chat-to-messages.ts'
import { completionPrompts, completionToChat, echoedPrompts } from './requests/completions-to-chat.ts'
import { stripsFences, stripsFencesOfChat } from './requests/json-mode.ts'
import { cutLargeStrings, restoreLargeStrings, TooMuchLeftError } from './requests/large-strings.ts'
import { messagesToChat } from './requests/messages-to-chat.ts'
import { stripsFencesOfResponses } from './requests/responses-settings.ts'
import { responsesToChat } from './requests/responses-to-chat.ts'
import { responsesToMessages } from './requests/responses-to-messages.ts'
import { originalToolNames } from './requests/tool-names.ts'
import type { TargetModel } from './target-model.ts'
import { errorInsteadOfAnswer } from './upstream-errors.ts'

export type CallerProtocol = 'chat_completions' | 'messages' | 'completions' | 'responses'
export type UpstreamProtocol = 'chat_completions' | 'messages'

export interface TranslationOptions {
  caller: CallerProtocol
  upstream: UpstreamProtocol
  target: TargetModel
  /** The model id as the caller named it. */
  modelId: string
  /** Whether the caller asked for usage on its stream. */
  usageAsked: boolean
  /** Seconds since the epoch, for upstreams that tell no time. */
  nowSeconds: number
}

/** Without its long texts a body is parsed up to this size: a tree takes many times the bytes of its text. */
const LARGEST_TREE_BYTES = 8 * 1024 * 1024
/** A turn that its provider paused is continued so often; then what there is counts as cut off. */
export const MOST_CONTINUATIONS = 8

/**
 * One call between two protocols. It may take several exchanges with the upstream: a turn that the provider paused is
 * continued with what it said so far, and each prompt of a legacy completion is an exchange of its own. To the caller
 * they are one answer.
 */
export class TranslatedCall {
  readonly #options: TranslationOptions
  readonly #encoder: EventEncoder
  readonly #stripper: FenceStripper | null
  /** The caller's names of tools that the upstream knows by others. */
  readonly #toolNames: ReadonlyMap<string, string>
  #cut: Uint8Array[]
  #letGo: () => void = () => {}
  /** Requests of exchanges to come, as the caller's protocol or chat says them. */
  #waiting: Json[]
  /** The request of the exchange at hand, for as long as it may have to be sent again. */
  #request: Json = {}
  #decoder: EventDecoder
  #content: AssistantContent | null = null
  #exchanges = 0
  /** The stop of a turn that its provider paused, until it goes on. */
  #pause: Extract<ModelEvent, { type: 'stop' }> | null = null
  #continuations = 0
  /** Choices of one exchange, where each prompt has its own. */
  readonly #choices: number
  #prompt = -1
  /** Tool calls that earlier exchanges told. */
  #callsBefore = 0
  #calls = 0
  #usageBefore: Usage | null = null
  #usage: Usage | null = null
  /** Of whole answers. */
  readonly #events: ModelEvent[] = []

  /** @throws ApiError invalid_request for a body that the upstream's protocol cannot say. */
  constructor(body: Uint8Array, options: TranslationOptions) {
    this.#options = options
    const { text, cut } = cutBody(body, options.caller)
    this.#cut = cut
    const request = objectOf(parseJson(text))
    // Responses have namespaces besides, so that who tells them names the tools.
    this.#toolNames = options.caller === 'responses' ? new Map() : originalToolNames(request)
    const prompts = options.caller === 'completions' ? completionPrompts(request) : null
    const requests = prompts
      ? prompts.map((prompt) => completionToChat(request, prompt, chatModelOf(options)))
      : [request]
    this.#stripper = STRIPS[options.caller][options.upstream]?.(request, options.target)
      ? new FenceStripper()
      : null
    const echoed = prompts && request.echo === true ? echoedPrompts(prompts, cut) : null
    this.#waiting = requests.map((each) => upstreamRequest(each, options))
    // A later exchange sends what was cut once more, when the answer to the first is on its way to the caller and the
    // body is given back.
    const again = this.#waiting.length > 1 || this.#waiting.some((each) => mayPause(each, options.upstream))
    if (again && cut.length > 0) this.#letGo = holdBuffer(body)
    this.#choices = typeof request.n === 'number' ? request.n : 1
    this.#encoder = encoderFor(options, request, echoed)
    this.#decoder = decoderFor(options.upstream)
  }

  /** The body of the next exchange. */
  nextBody(): { pieces: Uint8Array[]; length: number } {
    if (!this.#pause) this.#prompt++
    const request = this.#pause ? continued(this.#request, this.#content) : this.#waiting.shift()
    if (!request) throw new Error('the call is complete')
    this.#decoder = decoderFor(this.#options.upstream)
    this.#exchanges++
    this.#pause = null
    const pauses = mayPause(request, this.#options.upstream)
    this.#content = pauses ? new AssistantContent() : null
    this.#request = pauses ? request : {}
    const pieces = restoreLargeStrings(JSON.stringify(request), this.#cut)
    // What goes out now holds the body by itself.
    if (!pauses && this.#waiting.length === 0) this.release()
    return { pieces, length: pieces.reduce((length, piece) => length + piece.length, 0) }
  }

  /** Lets go of the caller's body. To be called when the call is over, however it ended. */
  release(): void {
    this.#cut = []
    this.#letGo()
  }

  /**
   * @param frame of the upstream's stream, as its reader lets it pass.
   * @param original the same as it came; null for a frame that the gateway made. A paused turn goes on with what the
   * upstream said, not with what its caller may see: there values stand in the place of their tokens, which the upstream
   * must not see, and thinking may have lost its signature.
   * @returns frames for the caller.
   */
  frame(frame: SseFrame, original: SseFrame | null = frame): Uint8Array[] {
    if (frame.data === null) return []
    const text = decoder.decode(frame.data)
    if (text.trim() === '[DONE]') return []
    const data = objectOf(parseJson(text))
    if (original === frame) this.#content?.frame(frame.event, data)
    else if (this.#content && original?.data) {
      this.#content.frame(original.event, objectOf(parseJson(decoder.decode(original.data))))
    }
    return this.#told(this.#decoder.frame(frame.event, data)).flatMap((event) => this.#encoder.frames(event))
  }

  /**
   * Takes a whole answer.
   * @param original the same as it came, for a turn that goes on (`frame`).
   * @returns null, or what the upstream says in place of an answer.
   * @throws SyntaxError if it is not JSON.
   */
  answer(body: Uint8Array, original: Uint8Array = body): string | null {
    const data = objectOf(parseJson(decoder.decode(body)))
    const error = errorInsteadOfAnswer(data, this.#options.upstream)
    if (error !== null) return error
    this.#content?.answer(original === body ? data : objectOf(parseJson(decoder.decode(original))))
    for (const event of this.#told(this.#decoder.answer(data))) this.#events.push(event)
    return null
  }

  /** Whether another exchange can still follow the one at hand. */
  get mayGoOn(): boolean {
    return this.#content !== null || this.#waiting.length > 0
  }

  /**
   * To be asked once when an exchange is over: whether another one follows.
   * @param affordable whether the call's reservation covers going on with a paused turn.
   */
  goesOn(affordable: boolean): boolean {
    this.#callsBefore += this.#calls
    this.#calls = 0
    if (this.#usage) this.#usageBefore = addUsage(this.#usageBefore, this.#usage)
    this.#usage = null
    if (!this.#pause || !this.#content) return this.#waiting.length > 0
    this.#continuations++
    return affordable && this.#continuations <= MOST_CONTINUATIONS
  }

  /** Frames that end the caller's stream. */
  finish(): Uint8Array[] {
    return this.#ending().flatMap((event) => this.#encoder.frames(event))
  }

  /** A turn that was paused and does not go on was cut off. */
  #ending(): ModelEvent[] {
    const stop: ModelEvent[] = this.#pause ? [{ ...this.#pause, reason: 'length' }] : []
    return [...stop, { type: 'end' } as const].flatMap((event) => this.#stripped(event))
  }

  /** The caller's answer, of all that was taken. */
  result(): Uint8Array {
    const events = [...this.#events, ...this.#ending()]
    return encoder.encode(JSON.stringify(this.#encoder.answer(events)))
  }

  /** The caller's answer as the stream that it asked for, when the upstream would not stream. */
  resultAsFrames(): Uint8Array[] {
    return [...this.#events.flatMap((event) => this.#encoder.frames(event)), ...this.finish()]
  }

  /** Events of one exchange as part of the one answer. */
  #told(events: ModelEvent[]): ModelEvent[] {
    return events.flatMap((event) => this.#numbered(event)).flatMap((event) => this.#stripped(event))
  }

  #stripped(event: ModelEvent): ModelEvent[] {
    return this.#stripper ? this.#stripper.events(event) : [event]
  }

  #numbered(event: ModelEvent): ModelEvent[] {
    if (event.type === 'end') return []
    if (event.type === 'start') return this.#exchanges === 1 ? [event] : []
    if (event.type === 'usage') {
      this.#usage = event.usage
      return [{ type: 'usage', usage: addUsage(this.#usageBefore, event.usage) }]
    }
    if (event.type === 'stop' && event.reason === 'pause' && this.#content) {
      this.#pause = event
      return []
    }
    const choice = event.choice + this.#prompt * this.#choices
    if (!('call' in event)) return [{ ...event, choice }]
    const call = event.call + this.#callsBefore
    if (event.type === 'tool_arguments') return [{ ...event, choice, call }]
    this.#calls = Math.max(this.#calls, event.call + 1)
    return [{ ...event, choice, call, name: this.#toolNames.get(event.name) ?? event.name }]
  }
}

function cutBody(body: Uint8Array, caller: CallerProtocol): { text: string; cut: Uint8Array[] } {
  try {
    return cutLargeStrings(body, LARGEST_TREE_BYTES)
  } catch (error) {
    if (!(error instanceof TooMuchLeftError)) throw error
    const native =
      caller === 'responses' ? '' : ' for a model of another protocol: use the protocol of its provider'
    throw invalidRequest(
      `The body is too large${native}. Long texts and files within messages, and long prompts, do not count; everything ` +
        `else may have ${LARGEST_TREE_BYTES} bytes.`,
    )
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const REQUESTS: Record<
  CallerProtocol,
  Record<UpstreamProtocol, (request: Json, target: TargetModel) => Json>
> = {
  chat_completions: { messages: chatToMessages, chat_completions: (request) => request },
  completions: { messages: chatToMessages, chat_completions: (request) => request },
  messages: { chat_completions: messagesToChat, messages: (request) => request },
  responses: { chat_completions: responsesToChat, messages: responsesToMessages },
}

/** Whose answers are rid of a code fence, because what they have to be is asked for in words. */
const STRIPS: Record<
  CallerProtocol,
  Partial<Record<UpstreamProtocol, (request: Json, target: TargetModel) => boolean>>
> = {
  chat_completions: { messages: stripsFences },
  messages: { chat_completions: stripsFencesOfChat },
  completions: {},
  responses: stripsFencesOfResponses,
}

/** The model, where a legacy completion goes to it as a chat completion. */
const chatModelOf = ({ upstream, target }: TranslationOptions) =>
  upstream === 'chat_completions' ? target : undefined

function upstreamRequest(request: Json, options: TranslationOptions): Json {
  const { caller, upstream, target } = options
  const translated = { ...REQUESTS[caller][upstream](request, target), model: target.upstreamModel }
  // Without it a chat stream reports no usage at all, and every call is metered.
  const streams = upstream === 'chat_completions' && request.stream === true
  return streams ? { ...translated, stream_options: { include_usage: true } } : translated
}

function encoderFor(options: TranslationOptions, request: Json, echoed: string[] | null): EventEncoder {
  const { caller, modelId, usageAsked, nowSeconds } = options
  if (caller === 'messages') return new MessagesEncoder(modelId)
  if (caller === 'responses') return new ModelEventEncoder()
  if (caller === 'chat_completions') return new ChatEncoder({ modelId, usageAsked, nowSeconds })
  const choicesPerPrompt = typeof request.n === 'number' ? request.n : 1
  return new CompletionEncoder({ modelId, usageAsked, nowSeconds, echoed, choicesPerPrompt })
}

const decoderFor = (upstream: UpstreamProtocol): EventDecoder =>
  upstream === 'messages' ? new MessagesDecoder() : new ChatDecoder()

/** Only turns with a tool that runs at the provider are ever paused. */
function mayPause(request: Json, upstream: UpstreamProtocol): boolean {
  if (upstream !== 'messages') return false
  return listOf(request.tools).some((tool) => typeof tool.type === 'string' && tool.type !== 'custom')
}

/**
 * A paused turn goes on when its content is sent back as it was
 * (https://docs.anthropic.com/en/api/handling-stop-reasons).
 */
function continued(request: Json, content: AssistantContent | null): Json {
  const messages = listOf(request.messages)
  const said = content?.blocks() ?? []
  const last = messages[messages.length - 1]
  if (last?.role !== 'assistant')
    return { ...request, messages: [...messages, { role: 'assistant', content: said }] }
  const before = Array.isArray(last.content) ? last.content : [{ type: 'text', text: last.content }]
  return { ...request, messages: [...messages.slice(0, -1), { ...last, content: [...before, ...said] }] }
}
