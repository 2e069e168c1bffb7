import type { Usage } from '../../governance/credits.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { type JsonPath, JsonSyntaxError, scanJson } from '../../lib/json-scan.ts'
import { encodeFrame, type SseFrame } from '../../lib/sse.ts'
import { countTokensRequest, messagesRequest } from '../../wire/model-requests.ts'
import { AlternatingMessagesCheck } from './message-checks.ts'
import type { AnswerContext, AnswerReading, FrameVerdict, Protocol, StreamReader } from './protocol.ts'
import { type OutlineRules, outlineRequest } from './request-outline.ts'
import { isText } from './text-fields.ts'
import { usageOfMessages } from './usage.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const PING = encodeFrame('ping', { type: 'ping' })

const rules: OutlineRules = {
  schema: messagesRequest,
  messages: () => new AlternatingMessagesCheck(),
  maximumOutput: (fields) => fields.max_tokens as number,
  choices: () => 1,
}

/** Messages between equal protocols. */
export const messages: Protocol = {
  outline: (body) => outlineRequest(body, rules),
  removals: ['metadata', 'litellm_metadata', 'proxy_server_request', 'cache_control'],
  usageIsOptional: false,
  readAnswer,
  streamReader: (context) => new MessagesStreamReader(context),
}

/** Token counting: the same request, no generation. */
export const countTokens: Protocol = {
  ...messages,
  outline: (body) => outlineRequest(body, { ...rules, schema: countTokensRequest, maximumOutput: () => 0 }),
}

function readAnswer(body: Uint8Array, context: AnswerContext): AnswerReading {
  const scan = new EventScan(body, context, false)
  scanJson(body, scan)
  context.inspection.endUnit(body.length)
  const usage = scan.members.get('usage')
  return { edits: scan.edits, usage: usage ? usageOfMessages(scan.parse(usage)) : null }
}

interface Place {
  start: number
  end: number
}

/** Reads an answer or an event: texts to the inspection, places of the members that later steps read. */
class EventScan {
  readonly valueDepth = 2
  readonly edits: ByteEdit[] = []
  readonly members = new Map<string, Place>()
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
    if (!isText(path, this.#bytes, start)) return
    this.textBytes += end - start
    const edit = this.#context.inspection.text({ path, partial: this.#partial }, this.#bytes, start, end)
    if (edit) this.edits.push(edit)
  }

  value(path: JsonPath, _kind: unknown, start: number, end: number): void {
    const name = path.join('.')
    this.members.set(name, { start, end })
    if (this.#context.modelId !== null && (name === 'model' || name === 'message.model')) {
      this.edits.push({ start, end, replacement: encoder.encode(JSON.stringify(this.#context.modelId)) })
    }
  }

  parse(place: Place | undefined): unknown {
    return place && JSON.parse(decoder.decode(this.#bytes.subarray(place.start, place.end)))
  }
}

class MessagesStreamReader implements StreamReader {
  ended = false
  textBytes = 0
  readonly heartbeat = PING
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
    const type = frame.event ?? String(scan.parse(scan.members.get('type')) ?? '')
    return (EVENTS[type] ?? forward)(this, scan)
  }

  /** Called by the event table. */
  addUsage(value: unknown, final: boolean): void {
    if (value !== undefined) this.#usage = usageOfMessages(value, this.#usage ?? undefined)
    this.#final ||= final
  }

  closing(): Uint8Array[] | null {
    return this.ended ? [] : null
  }

  usage(): { usage: Usage; final: boolean } | null {
    return this.#usage && { usage: this.#usage, final: this.#final }
  }

  failure(message: string): Uint8Array[] {
    return [encodeFrame('error', { type: 'error', error: { type: 'api_error', message } })]
  }
}

type EventHandler = (reader: MessagesStreamReader, scan: EventScan) => FrameVerdict

const forward: EventHandler = (_reader, scan) => ({ kind: 'forward', edits: scan.edits, started: true })

/** What each event means to the gateway; events that are not listed pass as they are. */
const EVENTS: Record<string, EventHandler> = {
  message_start(reader, scan) {
    reader.addUsage(scan.parse(scan.members.get('message.usage')), false)
    return forward(reader, scan)
  },
  content_block_delta(reader, scan) {
    reader.textBytes += scan.textBytes
    return forward(reader, scan)
  },
  message_delta(reader, scan) {
    reader.addUsage(scan.parse(scan.members.get('usage')), true)
    return forward(reader, scan)
  },
  message_stop(reader, scan) {
    reader.ended = true
    return forward(reader, scan)
  },
  ping: (_reader, scan) => ({ kind: 'forward', edits: scan.edits, started: false }),
  error: (_reader, scan) => ({
    kind: 'failure',
    message: String(scan.parse(scan.members.get('error.message')) ?? 'The upstream reported an error.'),
    forward: true,
  }),
}
