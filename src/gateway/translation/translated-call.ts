import { invalidRequest } from '../../lib/api-error.ts'
import type { SseFrame } from '../../lib/sse.ts'
import { type BodyMembers, changeMembers } from '../protocols/body-members.ts'
import { type Json, objectOf, parseJson } from '../protocols/json.ts'
import type { CallerProtocol, UpstreamProtocol } from '../protocols/protocol.ts'
import { CallSignatures } from './events/call-signatures.ts'
import { ChatDecoder } from './events/chat-decoder.ts'
import { ConverseDecoder } from './events/converse-decoder.ts'
import { FenceStripper } from './events/fence-stripper.ts'
import { GenerateContentDecoder } from './events/generate-content-decoder.ts'
import { MessagesDecoder } from './events/messages-decoder.ts'
import { PromptEcho } from './events/prompt-echo.ts'
import type { EventDecoder, EventFilter, ModelEvent } from './model-events.ts'
import { chatToMessages } from './requests/chat-to-messages.ts'
import { COMPLETION_MEMBERS } from './requests/completion-members.ts'
import { completionToChat, echoedPrompt } from './requests/completions-to-chat.ts'
import { requestJson } from './requests/kept-tools.ts'
import { cutLargeStrings, restoreLargeStrings, TooMuchLeftError } from './requests/large-strings.ts'
import { droppedMembers } from './requests/member-rules.ts'
import { messagesToChat } from './requests/messages-to-chat.ts'
import type { ConvertedRequest } from './requests/output-format.ts'
import { responsesToChat } from './requests/responses-to-chat.ts'
import { responsesToMessages } from './requests/responses-to-messages.ts'
import type { OwnDefinitions } from './requests/responses-tools.ts'
import { TO_CONVERSE } from './requests/to-converse.ts'
import { TO_GENERATE_CONTENT } from './requests/to-generate-content.ts'
import { originalToolNames } from './requests/tool-names.ts'
import type { TargetModel } from './target-model.ts'
import { errorInsteadOfAnswer } from './upstream-errors.ts'

export interface TranslationOptions {
  caller: CallerProtocol
  upstream: UpstreamProtocol
  target: TargetModel
  /** Tools of this service that are left out of the body of a turn. */
  own?: OwnDefinitions | null
  /** The members that the upstream takes; absent for those of its protocol. */
  bodyMembers?: BodyMembers | null
  /** Whether the upstream's chunks repeat pieces of reasoning. */
  repeatsReasoning?: boolean
}

/** A body in pieces, in order, and its length in bytes. */
interface TranslatedRequest {
  pieces: Uint8Array[]
  length: number
}

/** Limit of a body without its long texts: a parsed tree takes many times the bytes of its text. */
const LARGEST_TREE_BYTES = 8 * 1024 * 1024

/** One call between two protocols: the request for the upstream, and its answer as events. */
export class TranslatedCall {
  /** Members of the request that only tune the answer, or that no table lists, and that the upstream is not sent. */
  readonly dropped: readonly string[]
  readonly #upstream: UpstreamProtocol
  readonly #decoder: EventDecoder
  readonly #filter: EventFilter | null
  readonly #signatures: EventFilter | null
  /** The caller's names of tools that have another name upstream, by that name. */
  readonly #toolNames: ReadonlyMap<string, string>
  #request: TranslatedRequest | null

  /**
   * @param body in the caller's protocol; long texts of it become pieces of the request, which are views of it.
   * @throws ApiError invalid_request for a body that the upstream's protocol cannot express.
   */
  constructor(body: Uint8Array, options: TranslationOptions) {
    const { text, cut } = cutBody(body, options.caller)
    const request = objectOf(parseJson(text))
    this.#upstream = options.upstream
    this.#decoder = DECODERS[options.upstream](options)
    this.#signatures =
      VENDOR_PROTOCOLS.has(options.upstream) || options.target.signsCalls
        ? new CallSignatures(options.caller, options.target.origin)
        : null
    // The response engine restores names itself, because its tools have namespaces.
    this.#toolNames = options.caller === 'responses' ? new Map() : originalToolNames(request)
    const { body: upstreamBody, jsonByInstruction, dropped } = convert(request, options)
    this.dropped = dropped
    if (jsonByInstruction) this.#filter = new FenceStripper()
    else if (options.caller === 'completions' && request.echo === true) {
      this.#filter = new PromptEcho(echoedPrompt(request, cut))
    } else this.#filter = null
    const pieces = restoreLargeStrings(requestJson(upstreamBody), cut)
    this.#request = { pieces, length: pieces.reduce((length, piece) => length + piece.length, 0) }
  }

  /**
   * Transfers ownership of the request: a body of 50 MB must not live as long as the answer.
   * @throws Error the second time.
   */
  takeRequest(): TranslatedRequest {
    const request = this.#request
    if (!request) throw new Error('the request was taken before')
    this.#request = null
    return request
  }

  /** @param frame of the upstream's stream, after inspection. */
  events(frame: SseFrame): ModelEvent[] {
    if (frame.data === null) return []
    const text = decoder.decode(frame.data)
    if (text.trim() === '[DONE]') return []
    return this.#forCaller(this.#decoder.frame(frame.event, objectOf(parseJson(text))))
  }

  /**
   * @param body a whole answer of the upstream, after inspection.
   * @returns the events that it would have streamed, or the message of an error in its place.
   * @throws SyntaxError if it is not JSON.
   */
  answer(body: Uint8Array): ModelEvent[] | { error: string } {
    const data = objectOf(parseJson(decoder.decode(body)))
    const error = errorInsteadOfAnswer(data, this.#upstream)
    return error === null ? this.#forCaller(this.#decoder.answer(data)) : { error }
  }

  /** The last events of an answer, streamed or whole: held-back text, and `end`. */
  ending(): ModelEvent[] {
    return this.#filtered({ type: 'end' })
  }

  #forCaller(events: ModelEvent[]): ModelEvent[] {
    const signed = this.#signatures
      ? events.flatMap((event) => this.#signatures?.events(event) ?? [])
      : events
    return signed.flatMap((event) => this.#filtered(this.#named(event)))
  }

  #named(event: ModelEvent): ModelEvent {
    if (event.type !== 'tool_call') return event
    return { ...event, name: this.#toolNames.get(event.name) ?? event.name }
  }

  #filtered(event: ModelEvent): ModelEvent[] {
    return this.#filter ? this.#filter.events(event) : [event]
  }
}

const decoder = new TextDecoder()

/**
 * Protocols that no caller speaks. Their addresses name the model, and their requests are read from canonical ones, which
 * take back the signatures that are marked with their origin.
 */
const VENDOR_PROTOCOLS: ReadonlySet<UpstreamProtocol> = new Set(['generate_content', 'converse'])

const DECODERS: Record<UpstreamProtocol, (options: TranslationOptions) => EventDecoder> = {
  chat_completions: ({ repeatsReasoning }) => new ChatDecoder(repeatsReasoning),
  messages: () => new MessagesDecoder(),
  generate_content: () => new GenerateContentDecoder(),
  converse: () => new ConverseDecoder(),
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

type Converter = (request: Json, target: TargetModel, own: OwnDefinitions | null) => ConvertedRequest

const CONVERTERS: Record<CallerProtocol, Partial<Record<UpstreamProtocol, Converter>>> = {
  chat_completions: { messages: chatToMessages, ...fromCanonical('chat_completions') },
  completions: {
    chat_completions: (request, target) => {
      const body = completionToChat(request, target)
      return { body, jsonByInstruction: false, dropped: droppedMembers(request, COMPLETION_MEMBERS, body) }
    },
    messages: (request, target) => {
      const chat = completionToChat(request)
      const converted = chatToMessages(chat, target)
      const dropped = [...droppedMembers(request, COMPLETION_MEMBERS, chat), ...converted.dropped]
      return { ...converted, dropped }
    },
    ...fromCanonical('completions'),
  },
  messages: { chat_completions: messagesToChat, ...fromCanonical('messages') },
  responses: {
    chat_completions: responsesToChat,
    messages: responsesToMessages,
    ...fromCanonical('responses'),
  },
}

/** The converters to the protocols that are written from canonical requests. */
function fromCanonical(caller: CallerProtocol): Partial<Record<UpstreamProtocol, Converter>> {
  return { generate_content: TO_GENERATE_CONTENT[caller], converse: TO_CONVERSE[caller] }
}

function convert(
  request: Json,
  { caller, upstream, target, own = null, bodyMembers = null }: TranslationOptions,
): ConvertedRequest {
  const converter = CONVERTERS[caller][upstream]
  if (!converter) throw new Error(`${caller} needs no translation to ${upstream}`)
  const { body, jsonByInstruction, dropped } = converter(request, target, own)
  if (!VENDOR_PROTOCOLS.has(upstream)) body.model = target.upstreamModel
  // Without this option a chat stream reports no usage, and every call is metered.
  if (upstream === 'chat_completions' && request.stream === true) {
    body.stream_options = { include_usage: true }
  }
  if (bodyMembers === null) return { body, jsonByInstruction, dropped }
  const changed = changeMembers(body, bodyMembers)
  return { body: changed.body, jsonByInstruction, dropped: [...dropped, ...changed.dropped] }
}
