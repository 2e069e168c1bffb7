import type { Usage } from '../../governance/credits.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { type JsonPath, JsonSyntaxError, scanJson } from '../../lib/json-scan.ts'
import { encodeFrame, type SseFrame } from '../../lib/sse.ts'
import { countTokensRequest, messagesRequest } from '../../wire/model-requests.ts'
import { AlternatingMessagesCheck } from './message-checks.ts'
import type { AnswerContext, AnswerReading, FrameVerdict, Protocol, StreamReader } from './protocol.ts'
import { type OutlineRules, outlineRequest } from './request-outline.ts'
import { isText } from './text-fields.ts'
import { unsignedThinkingEdits } from './unsigned-thinking.ts'
import { usageOfMessages } from './usage.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const PING = encodeFrame('ping', { type: 'ping' })

const REMOVALS = ['metadata', 'litellm_metadata', 'proxy_server_request', 'cache_control']

const rules: OutlineRules = {
  schema: messagesRequest,
  messages: () => new AlternatingMessagesCheck(),
  removals: REMOVALS,
  maximumOutput: (fields) => fields.max_tokens as number,
  choices: () => 1,
}

/** Messages between equal protocols. */
export const messages: Protocol = {
  outline: (body) => outlineRequest(body, rules),
  removals: REMOVALS,
  usageIsOptional: false,
  ownEdits: unsignedThinkingEdits,
  readAnswer,
  streamReader: (context) => new MessagesStreamReader(context),
  dialect: {
    heartbeat: PING,
    failure: (message) => [encodeFrame('error', { type: 'error', error: { type: 'api_error', message } })],
  },
}

/** Token counting: the same request, no generation. */
export const countTokens: Protocol = {
  ...messages,
  // The interface allows both; the upstream counts a request that generates nothing and knows neither.
  removals: [...messages.removals, 'stream', 'max_tokens'],
  outline: (body) => outlineRequest(body, { ...rules, schema: countTokensRequest, maximumOutput: () => 0 }),
}

function readAnswer(body: Uint8Array, context: AnswerContext): AnswerReading {
  const scan = new EventScan(body, context, false)
  scanJson(body, scan)
  context.inspection.endUnit(body.length)
  return { edits: scan.edits, usage: usageOfMessages(scan.parse('usage'), null), textBytes: scan.textBytes }
}

/** Reads an answer or an event: texts to the inspection, places of the members that later steps read. */
class EventScan {
  readonly valueDepth = 2
  readonly edits: ByteEdit[] = []
  readonly #places = new Map<string, { start: number; end: number }>()
  textBytes = 0
  readonly #bytes: Uint8Array
  readonly #context: AnswerContext
  readonly #partial: boolean

  constructor(bytes: Uint8Array, context: AnswerContext, partial: boolean) {
    this.#bytes = bytes
    this.#context = context
    this.#partial = partial
  }

  string(path: JsonPath, start: number, end: number): void {
    if (!isText(path, this.#bytes, start, end)) return
    this.textBytes += end - start
    const edit = this.#context.inspection.text({ path, partial: this.#partial }, this.#bytes, start, end)
    if (edit) this.edits.push(edit)
  }

  value(path: JsonPath, _kind: unknown, start: number, end: number): void {
    const place = placeOf(path)
    this.#places.set(place, { start, end })
    if (this.#context.modelId !== null && MODEL_PLACES.has(place)) {
      this.edits.push({ start, end, replacement: encoder.encode(JSON.stringify(this.#context.modelId)) })
    }
  }

  /** The value of a member, by its path of one or two names; undefined when it is absent. */
  parse(...path: string[]): unknown {
    const place = this.#places.get(placeOf(path))
    return place && JSON.parse(decoder.decode(this.#bytes.subarray(place.start, place.end)))
  }
}

/** Names may hold any character, and so no separator between them would be safe. */
const placeOf = (path: JsonPath) => JSON.stringify(path)
const MODEL_PLACES = new Set([placeOf(['model']), placeOf(['message', 'model'])])

class MessagesStreamReader implements StreamReader {
  ended = false
  textBytes = 0
  #usage: Usage | null = null
  #final = false
  readonly #context: AnswerContext

  constructor(context: AnswerContext) {
    this.#context = context
  }

  read(frame: SseFrame): FrameVerdict {
    const { inspection } = this.#context
    if (frame.data === null) {
      inspection.endUnit(frame.bytes.length)
      return { kind: 'drop' }
    }
    const scan = new EventScan(frame.data, this.#context, true)
    try {
      scanJson(frame.data, scan)
    } catch (error) {
      inspection.endUnit(frame.bytes.length)
      if (!(error instanceof JsonSyntaxError)) throw error
      return { kind: 'failure', message: 'The upstream sent an event that is not JSON.', forward: false }
    }
    inspection.endUnit(frame.bytes.length)
    for (const edit of scan.edits) {
      edit.start += frame.dataStart
      edit.end += frame.dataStart
    }
    const type = frame.event || String(scan.parse('type') ?? '')
    const handler = Object.hasOwn(EVENTS, type) ? EVENTS[type] : undefined
    return (handler ?? forward)(this, scan)
  }

  /** Called by the event table. @param final whether output counted here is all of it. */
  addUsage(value: unknown, final: boolean): void {
    const usage = usageOfMessages(value, this.#usage)
    if (usage === null) return
    this.#usage = usage
    this.#final ||= final
  }

  closing(): Uint8Array[] | null {
    return this.ended ? [] : null
  }

  usage(): { usage: Usage; final: boolean } | null {
    return this.#usage && { usage: this.#usage, final: this.#final }
  }
}

type EventHandler = (reader: MessagesStreamReader, scan: EventScan) => FrameVerdict

const forward: EventHandler = (_reader, scan) => ({ kind: 'forward', edits: scan.edits, started: true })

/** What each event means to the gateway; events that are not listed pass as they are. */
const EVENTS: Record<string, EventHandler> = {
  message_start(reader, scan) {
    reader.addUsage(scan.parse('message', 'usage'), false)
    return forward(reader, scan)
  },
  content_block_delta(reader, scan) {
    reader.textBytes += scan.textBytes
    return forward(reader, scan)
  },
  message_delta(reader, scan) {
    reader.addUsage(scan.parse('usage'), true)
    return forward(reader, scan)
  },
  message_stop(reader, scan) {
    reader.ended = true
    return forward(reader, scan)
  },
  ping: (_reader, scan) => ({ kind: 'forward', edits: scan.edits, started: false }),
  error(_reader, scan) {
    const message = scan.parse('error', 'message')
    const known = typeof message === 'string' && message !== ''
    return { kind: 'failure', message: known ? message : 'The upstream reported an error.', forward: true }
  },
}
