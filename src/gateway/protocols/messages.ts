import type { Usage } from '../../governance/credits.ts'
import { applyEdits, type ByteEdit, joinBytes } from '../../lib/byte-edits.ts'
import {
  type JsonKind,
  type JsonPath,
  JsonSyntaxError,
  MAXIMUM_DEPTH,
  scanJson,
} from '../../lib/json-scan.ts'
import { encodeFrame, type SseFrame } from '../../lib/sse.ts'
import { countTokensRequest, messagesRequest } from '../../wire/model-requests.ts'
import { EventTexts, eventDirection, fieldOf, type TextEvent } from './event-texts.ts'
import { AlternatingMessagesCheck } from './message-checks.ts'
import {
  type AnswerContext,
  type AnswerReading,
  type FrameVerdict,
  keepsSignatures,
  leavesTextsUnchanged,
  type Protocol,
  type StreamReader,
} from './protocol.ts'
import { MESSAGES_REQUEST_TEXTS } from './request-inspection.ts'
import { type OutlineRules, outlineRequest } from './request-outline.ts'
import { SourceData } from './source-data.ts'
import { type FrameString, type HeldFrame, inspectOwnValue } from './streamed-texts.ts'
import { isText, isUnreadable } from './text-fields.ts'
import { unsignedThinkingEdits } from './unsigned-thinking.ts'
import { usageOfMessages } from './usage.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const PING = encodeFrame('ping', { type: 'ping' })
const MESSAGE_STOP = encodeFrame('message_stop', { type: 'message_stop' })

const REMOVALS = ['metadata', 'litellm_metadata', 'proxy_server_request', 'cache_control']

const rules: OutlineRules = {
  schema: messagesRequest,
  messages: () => new AlternatingMessagesCheck(),
  removals: REMOVALS,
  texts: MESSAGES_REQUEST_TEXTS,
  maximumOutput: (fields) => fields.max_tokens as number,
  choices: () => 1,
}

/** Messages between equal protocols. */
export const messages: Protocol = {
  outline: (body) => outlineRequest(body, rules),
  requestTexts: MESSAGES_REQUEST_TEXTS,
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
  scan.removeSignatures()
  context.inspection.endUnit(body.length)
  return { edits: scan.edits, usage: usageOfMessages(scan.parse('usage'), null), textBytes: scan.textBytes }
}

/** Reads an answer or an event: texts to the inspection, places of the members that later steps read. */
class EventScan {
  /** Numbers that a tool is called with may stand anywhere, where somebody looks at them. */
  readonly valueDepth: number
  readonly edits: ByteEdit[] = []
  readonly #places = new Map<string, { start: number; end: number }>()
  textBytes = 0
  /** Texts that are shown to the inspection when all of the event is known; null when each is shown at once. */
  readonly strings: FrameString[] | null
  readonly #bytes: Uint8Array
  readonly #context: AnswerContext
  /** Whether anything is looked for in texts. */
  readonly #active: boolean
  /** Blocks of thinking in a whole answer that were changed, and where blocks have their signatures. */
  readonly #changedThinking = new Set<number>()
  readonly #signatures = new Map<number, { start: number; end: number }>()
  readonly #sources = new SourceData<FrameString>()

  constructor(bytes: Uint8Array, context: AnswerContext, partial: boolean) {
    this.#bytes = bytes
    this.#context = context
    this.#active = !context.inspection.engine.passive
    this.strings = partial && this.#active ? [] : null
    this.valueDepth = this.#active ? MAXIMUM_DEPTH : 2
  }

  string(path: JsonPath, start: number, end: number): void {
    if (path[0] === 'content' && path[2] === 'signature')
      this.#signatures.set(Number(path[1]), { start, end })
    const { inspection } = this.#context
    if (this.#active && isUnreadable(path, this.#bytes, start, end))
      inspection.uninspectable(eventDirection(path))
    if (isText(path, this.#bytes, start, end)) this.#text({ path, start, end })
    else this.#sources.string(path, this.#bytes, start, end, () => ({ path: [...path], start, end }))
  }

  #text({ path, start, end }: FrameString): void {
    const { inspection } = this.#context
    this.textBytes += end - start
    if (this.strings) {
      this.strings.push({ path: [...path], start, end })
      return
    }
    const signed = path[2] === 'thinking'
    const field = { ...fieldOf(path), signed: signed && keepsSignatures(this.#context) }
    const edit = inspection.text(field, this.#bytes, start, end)
    if (!edit) return
    this.edits.push(edit)
    if (signed) this.#changedThinking.add(Number(path[1]))
  }

  /** Signatures of thinking that was changed prove nothing any more: the provider would refuse them. */
  removeSignatures(): void {
    for (const [block, place] of this.#signatures) {
      if (this.#changedThinking.has(block)) this.edits.push({ ...place, replacement: new Uint8Array() })
    }
  }

  /** Whether it is a delta with the signature of its block. */
  get isSignature(): boolean {
    return this.#places.has(SIGNATURE)
  }

  /** Cuts the signature out of a delta. */
  removeSignature(): void {
    const place = this.#places.get(SIGNATURE)
    if (place) this.edits.push({ ...place, replacement: encoder.encode('""') })
  }

  value(path: JsonPath, kind: JsonKind, start: number, end: number, memberStart: number): void {
    if (path.length > 2) {
      for (const { place, isBase64 } of this.#sources.end(path)) if (!isBase64) this.#text(place)
      // In a whole answer, and in the event that begins a block.
      if (path[2] !== 'input' && path[1] !== 'input') return
      const place = { path, start, end, memberStart }
      this.edits.push(...inspectOwnValue(this.#context.inspection, place, kind, this.#bytes))
      return
    }
    const place = placeOf(path)
    this.#places.set(place, { start, end })
    if (this.#context.modelId !== null && MODEL_PLACES.has(place)) {
      this.edits.push({ start, end, replacement: encoder.encode(JSON.stringify(this.#context.modelId)) })
    }
  }

  /** The event as it may be told. */
  edited(): unknown {
    return JSON.parse(decoder.decode(joinBytes(applyEdits(this.#bytes, this.edits).pieces)))
  }

  /** The value of a member, by its path of one or two names; undefined when it is absent. */
  parse(...path: string[]): unknown {
    const place = this.#places.get(placeOf(path))
    return place && JSON.parse(decoder.decode(this.#bytes.subarray(place.start, place.end)))
  }
}

/** Names may hold any character: the length of the first tells where the second begins. */
const placeOf = (path: JsonPath): string =>
  path.length === 1 ? `=${path[0]}` : `${String(path[0]).length}=${path[0]}${path[1]}`
const SIGNATURE = placeOf(['delta', 'signature'])
const MODEL_PLACES = new Set([placeOf(['model']), placeOf(['message', 'model'])])

class MessagesStreamReader implements StreamReader {
  ended = false
  /** A stop reason was told: nothing of the message can follow. */
  stopped = false
  textBytes = 0
  readonly texts: EventTexts
  /** The event that tells the end tells the usage. */
  readonly usagePending = false
  #usage: Usage | null = null
  /** Output was counted after the beginning. */
  #outputCounted = false
  readonly #context: AnswerContext

  constructor(context: AnswerContext) {
    this.#context = context
    this.texts = new EventTexts(context.inspection, keepsSignatures(context))
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
      if (scan.strings) scan.edits.push(...this.texts.edits(scan.strings, frame.data, eventOf(frame, scan)))
    } catch (error) {
      inspection.endUnit(frame.bytes.length)
      if (!(error instanceof JsonSyntaxError)) throw error
      return { kind: 'failure', message: 'The upstream sent an event that is not JSON.', forward: null }
    }
    inspection.endUnit(frame.bytes.length)
    const type = typeOf(frame, scan)
    const handler = Object.hasOwn(EVENTS, type) ? EVENTS[type] : undefined
    const verdict = (handler ?? forward)(this, scan)
    for (const edit of scan.edits) {
      edit.start += frame.dataStart
      edit.end += frame.dataStart
    }
    return verdict
  }

  /** Called by the event table. @param output whether output is counted here, and not only what is read. */
  addUsage(value: unknown, output: boolean): void {
    const usage = usageOfMessages(value, this.#usage)
    if (usage === null) return
    this.#usage = usage
    this.#outputCounted ||= output
  }

  /** Some upstreams omit `message_stop` after the stop reason; official clients throw without it. */
  closingFrames(): HeldFrame[] | null {
    if (this.ended) return []
    if (!this.stopped) return null
    return [...this.texts.end(null), { bytes: MESSAGE_STOP, released: 0, withheld: 0 }]
  }

  get passesUnread(): boolean {
    return leavesTextsUnchanged(this.#context)
  }

  /** Figures that came while the model went on talking are not all of it. */
  usage(): { usage: Usage; final: boolean } | null {
    const final = this.#outputCounted && (this.stopped || this.ended)
    return this.#usage && { usage: this.#usage, final }
  }
}

/** The block that a delta or stop is about. */
function blockOf(scan: EventScan): number | null {
  const index = scan.parse('index')
  return typeof index === 'number' ? index : null
}

const typeOf = (frame: SseFrame, scan: EventScan): string => frame.event || String(scan.parse('type') ?? '')

const eventOf = (frame: SseFrame, scan: EventScan): TextEvent => ({
  type: typeOf(frame, scan),
  block: blockOf(scan) ?? 0,
  delta: String(scan.parse('delta', 'type') ?? ''),
})

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
    if (!scan.isSignature) return forward(reader, scan)
    // Thinking is over when it is signed, and only now is it known whether it was changed.
    const block = blockOf(scan) ?? 0
    const before = reader.texts.end(block)
    if (reader.texts.changedThinking.has(block)) scan.removeSignature()
    return { kind: 'forward', edits: scan.edits, started: true, before }
  },
  content_block_stop: (reader, scan) => ({
    kind: 'forward',
    edits: scan.edits,
    started: true,
    before: reader.texts.end(blockOf(scan)),
  }),
  message_delta(reader, scan) {
    reader.addUsage(scan.parse('usage'), true)
    reader.stopped ||= typeof scan.parse('delta', 'stop_reason') === 'string'
    return forward(reader, scan)
  },
  message_stop(reader, scan) {
    reader.ended = true
    return { kind: 'forward', edits: scan.edits, started: true, before: reader.texts.end(null) }
  },
  ping: (_reader, scan) => ({ kind: 'forward', edits: scan.edits, started: false }),
  error(_reader, scan) {
    const { error } = scan.edited() as { error?: { message?: unknown } | null }
    const message = error?.message
    const known = typeof message === 'string' && message !== ''
    const text = known ? message : 'The upstream reported an error.'
    return { kind: 'failure', message: text, forward: scan.edits }
  },
}
