import type { ModelEvent, StopReason } from '../../gateway/translation/model-events.ts'
import type { Usage } from '../../governance/credits.ts'
import type { OutputItem, ResponseObject } from '../../wire/responses.ts'
import type { ToolResult } from '../engine/hosted-tool.ts'
import type { CallPurpose } from '../engine/tool-rules.ts'
import type { ReasoningSecret } from '../item-types/reasoning-secret.ts'
import { replayResponse } from '../log/replay.ts'
import { outputTextOf, responseUsage } from '../object/response-members.ts'
import type { CalledTool } from './call-item.ts'
import { type EmittedEvent, EventWriter, streamError } from './event-writer.ts'
import type { OpenItem } from './open-item.ts'
import { type ItemMaker, TurnItems } from './turn-items.ts'

export type { EmittedEvent }

export interface EmitterOptions {
  /** As it begins; of one that goes on after a restart, the payloads of all its events. */
  response: ResponseObject | Iterable<string>
  /** The number of the last event that exists, 0 when there is none. */
  lastSequence: number
  emit: (event: EmittedEvent) => void
  /** Of tools, by the name that the model calls them. Unknown names are kept. */
  nameOf: (upstreamName: string) => CalledTool
  /** What answers a call; asked when it begins. Without it the caller answers all. */
  purposeOf?: (upstreamName: string) => CallPurpose
  /** What `encrypted_content` is, null when it was not asked for. */
  seal: (secret: ReasoningSecret) => string | null
  /** Of reasoning items of earlier lives. */
  secrets?: ReadonlyMap<string, ReasoningSecret>
}

/** A call that a turn made. */
export interface TurnCall {
  callId: string
  upstreamName: string
  arguments: string
  purpose: CallPurpose
  /** Whether the turn ended in the middle of its arguments. */
  cut: boolean
}

/** What a turn of the model came to. */
export interface TurnEnd {
  /** Null when the upstream named none. */
  stop: StopReason | null
  /** Of a refusal, where the upstream gave one. */
  explanation: string | null
  /** A filter ended the answer, and not the model by its word. */
  filtered: boolean
  calls: TurnCall[]
  /** Of each reasoning item of the turn, in order. */
  reasoning: ReasoningSecret[]
  usage: Usage | null
}

/** How a response ends. */
export interface ResponseSettlement {
  status: 'completed' | 'incomplete' | 'failed'
  /** Of an incomplete one. */
  reason?: string
  /** Of a failed one. */
  error?: { code: string; message: string }
  usage: Usage | null
  /** Since the epoch. */
  completedSeconds: number
}

const UNTOLD_ERROR = { code: 'stream_error', message: 'The response could not be completed.' }

/** Whether a stop cuts off what the model was writing. */
export const isCut = (stop: StopReason | null): boolean => stop === 'length' || stop === 'context_window'

/**
 * Chat completions tell a filter and messages a refusal by a stop alone. Where neither the model nor the upstream says
 * why, nobody has refused: something was cut off, as the official `content_filter` means it.
 */
const isFiltered = ({ stop, refused, explanation }: OpenTurn): boolean =>
  stop === 'refusal' && !refused && explanation === null

type Handlers = {
  [Type in ModelEvent['type']]: (turn: OpenTurn, event: Extract<ModelEvent, { type: Type }>) => void
}

/** One turn while it runs. */
interface OpenTurn {
  items: TurnItems
  stop: StopReason | null
  explanation: string | null
  refused: boolean
  usage: Usage | null
}

/**
 * Tells what a model does as the events of the Responses surface, and keeps the response as they make it. The only one
 * to number events. For one response, of one or more turns.
 */
export class ResponseEmitter {
  /** The family of the model of the turn that begins; signatures mean something to it alone. */
  origin: string | null = null
  readonly #response: ResponseObject
  readonly #writer: EventWriter
  readonly #maker: ItemMaker
  readonly #secrets: Map<string, ReasoningSecret>
  /** Items of calls that wait for their result, by the id of the call. */
  readonly #awaiting: Map<string, OpenItem>
  #turn: OpenTurn | null = null
  #error: { code: string; message: string } | null = null
  #settled = false

  constructor(options: EmitterOptions) {
    const { response, lastSequence, emit, nameOf, seal, secrets, purposeOf = () => 'client' } = options
    this.#writer = new EventWriter(lastSequence, emit)
    this.#secrets = new Map(secrets)
    const { response: begun, items } = isIterable(response)
      ? replayResponse(response, this.#writer)
      : { response, items: [] }
    const output = items.map(({ item }) => item)
    this.#response = { ...begun, output }
    const waiting = items.filter(({ closed }) => !closed)
    this.#awaiting = new Map(waiting.flatMap((open) => callIdOf(open.item).map((id) => [id, open])))
    const callIds = new Set(output.flatMap(callIdOf))
    this.#maker = { writer: this.#writer, nameOf, purposeOf, seal, output, callIds }
  }

  /** `response.created` and `response.in_progress`. */
  begin(): void {
    if (this.#settled) return
    const members = { response: this.response }
    this.#writer.write('response.created', members)
    this.#writer.write('response.in_progress', members)
  }

  /** Tells one event. Items open and close by themselves; other choices than the first have no place here. */
  model<Event extends ModelEvent>(event: Event): void {
    if (this.#settled || ('choice' in event && event.choice !== 0)) return
    const handler = HANDLERS[event.type] as (turn: OpenTurn, event: Event) => void
    handler(this.#currentTurn(), event)
  }

  /** Ends a turn: closes its items, as cut off where its stop says so. */
  endTurn(): TurnEnd {
    const turn = this.#currentTurn()
    this.#turn = null
    const filtered = isFiltered(turn)
    const status = filtered || isCut(turn.stop) ? 'incomplete' : 'completed'
    // A model that refuses in the middle of a call says so, and leaves the call as it is.
    this.#close(turn.items, status, 'completed', turn.stop === 'refusal' ? 'incomplete' : status)
    return {
      stop: turn.stop,
      explanation: turn.explanation,
      filtered,
      calls: turn.items.calls.map(({ callId, upstreamName, arguments: json, purpose, cut }) => ({
        callId,
        upstreamName,
        arguments: json,
        purpose,
        cut,
      })),
      reasoning: turn.items.thoughts.map(({ secret }) => secret),
      usage: turn.usage,
    }
  }

  /** Tells the result of a call whose tool runs on this side. The first time counts. */
  answer(callId: string, { status, members }: ToolResult): void {
    this.#awaiting.get(callId)?.close(status, members)
    this.#awaiting.delete(callId)
  }

  /**
   * Fixes what the response came to, and closes what is open as incomplete. The first time counts. Its last event is
   * `terminate`'s, so that the response can be stored before anybody hears of its end.
   * @returns the final response.
   */
  settle(end: ResponseSettlement): ResponseObject {
    if (this.#settled) return this.response
    if (this.#turn) this.#close(this.#turn.items, 'incomplete', 'incomplete', 'incomplete')
    this.#turn = null
    for (const open of this.#awaiting.values()) open.close('incomplete')
    this.#settled = true
    const { status } = end
    if (status === 'failed') this.#error = end.error ?? UNTOLD_ERROR
    Object.assign(this.#response, {
      status,
      error: this.#error,
      incomplete_details: status === 'incomplete' ? { reason: end.reason ?? 'max_output_tokens' } : null,
      completed_at: status === 'completed' ? end.completedSeconds : null,
      usage: responseUsage(end.usage),
    })
    return this.response
  }

  /**
   * The last event: `response.completed` for a completed and an incomplete response, `error` and `response.failed` for
   * a failed one. Nothing is emitted after it. @throws if the response is not settled.
   */
  terminate(): void {
    if (!this.#settled) throw new Error('a response has to be settled before its last event')
    if (this.#error) this.#writer.write('error', streamError(this.#error.message))
    const last = this.#error ? 'response.failed' : 'response.completed'
    this.#writer.write(last, { response: this.response })
    this.#writer.close()
  }

  /** The response as it stands, a copy. */
  get response(): ResponseObject {
    const output = structuredClone(this.#maker.output)
    return { ...this.#response, output, output_text: outputTextOf(output) }
  }

  /** How many items there are so far. */
  get outputLength(): number {
    return this.#maker.output.length
  }

  /** The number of the last event that was told. */
  get lastSequence(): number {
    return this.#writer.lastSequence
  }

  /** What the turn that runs has used as far as its upstream told. */
  get turnUsage(): Usage | null {
    return this.#turn?.usage ?? null
  }

  /** Of reasoning items that are done, by the id of the item: for storing. */
  get reasoningSecrets(): ReadonlyMap<string, ReasoningSecret> {
    return this.#secrets
  }

  #currentTurn(): OpenTurn {
    this.#turn ??= {
      items: new TurnItems(this.#maker, this.origin),
      stop: null,
      explanation: null,
      refused: false,
      usage: null,
    }
    return this.#turn
  }

  #close(items: TurnItems, ...statuses: Parameters<TurnItems['close']>): void {
    items.close(...statuses)
    for (const { item, secret } of items.thoughts) this.#secrets.set(item.id, secret)
    for (const { callId, item } of items.calls) if (item && !item.closed) this.#awaiting.set(callId, item)
  }
}

const isIterable = (value: object): value is Iterable<string> => Symbol.iterator in value

const callIdOf = (item: OutputItem): string[] =>
  'call_id' in item && item.call_id !== undefined ? [item.call_id] : []

const HANDLERS: Handlers = {
  start(turn, event) {
    turn.usage = event.usage ?? turn.usage
  },
  text: ({ items }, event) => items.say('output_text', event.text),
  refusal(turn, event) {
    turn.refused ||= event.text !== ''
    turn.items.say('refusal', event.text)
  },
  reasoning: ({ items }, event) => items.think(event.text),
  reasoning_signature: ({ items }, event) => items.sign(event.signature),
  redacted_reasoning: ({ items }, event) => items.redact(event.data),
  tool_call: ({ items }, event) => items.call(event),
  tool_arguments: ({ items }, event) => items.argue(event.call, event.json),
  citation: ({ items }, event) => items.cite(event.citation, event.length),
  stop(turn, { reason, explanation }) {
    turn.stop = reason
    turn.explanation = explanation
    // The messages protocol tells why a model refused apart from what it said; here that is what a refusal is.
    if (explanation !== null && !turn.refused) turn.items.say('refusal', explanation)
  },
  usage(turn, event) {
    turn.usage = event.usage
  },
  end() {},
}
