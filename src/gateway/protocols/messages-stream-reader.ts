import type { Usage } from '../../ledger/audit-record.ts'
import type { Slices } from '../../lib/slices.ts'
import { encodeFrame, type SseFrame } from '../../lib/sse.ts'
import { EventScan } from './event-scan.ts'
import { EventTexts, type TextEvent } from './event-texts.ts'
import { moveToFrame, scanFrame } from './frame-json.ts'
import { alikeVerdict, FrameTemplate } from './frame-template.ts'
import { objectOf, textOf } from './json.ts'
import {
  type AlikeVerdict,
  type AnswerContext,
  type FrameVerdict,
  keepsSignatures,
  leavesTextsUnchanged,
  type StreamReader,
} from './protocol.ts'
import { usageOfMessages } from './reported-usage.ts'
import type { HeldFrame } from './streamed-texts.ts'

const MESSAGE_STOP = encodeFrame('message_stop', { type: 'message_stop' })

export class MessagesStreamReader implements StreamReader {
  ended = false
  /** A stop reason has come: no content can follow. */
  stopped = false
  textBytes = 0
  reasoned = false
  readonly texts: EventTexts
  /** The event with the stop reason has the usage. */
  readonly usagePending = false
  #usage: Usage | null = null
  /** Usage has come that counts output; `message_start` has only a placeholder for it. */
  #outputCounted = false
  readonly #context: AnswerContext
  /** Template of the last delta that was scanned; null before it, and under a policy. */
  #template: { event: string | null; frame: FrameTemplate } | null = null

  constructor(context: AnswerContext) {
    this.#context = context
    this.texts = new EventTexts(context.inspection, keepsSignatures(context))
  }

  *read(frame: SseFrame): Slices<FrameVerdict> {
    const { inspection } = this.#context
    const { data } = frame
    if (data === null) {
      inspection.endUnit(frame.bytes.length)
      return { kind: 'drop' }
    }
    return this.readAlike(frame) ?? (yield* this.#readEvent(frame, data))
  }

  readAlike(frame: SseFrame): AlikeVerdict | null {
    const template = this.#template
    const { data } = frame
    const effects = data && template?.event === frame.event ? template.frame.effectsOf(data) : null
    if (!effects) return null
    this.textBytes += effects.textBytes
    return alikeVerdict(effects, frame, this.#context.inspection)
  }

  *#readEvent(frame: SseFrame, data: Uint8Array): Slices<FrameVerdict> {
    const { inspection } = this.#context
    const { inspected: before } = inspection.counts
    const scan = new EventScan(data, this.#context, true)
    const failure = yield* scanFrame(frame, inspection, this.#inspectEvent(frame, data, scan))
    if (failure) return failure
    const type = typeOf(frame, scan)
    const handler = Object.hasOwn(EVENTS, type) ? EVENTS[type] : undefined
    const handled = (handler ?? forward)(this, scan)
    const verdict = 'kind' in handled ? handled : yield* handled
    if (type === 'content_block_delta' && !scan.isSignature && scan.changing.length > 0) {
      const { changing, edits, textBytes } = scan
      const inspected = inspection.counts.inspected - before
      this.#template = {
        event: frame.event,
        frame: new FrameTemplate(data, changing, { edits, textBytes, inspected }),
      }
    }
    moveToFrame(scan.edits, frame)
    return verdict
  }

  *#inspectEvent(frame: SseFrame, data: Uint8Array, scan: EventScan): Slices<void> {
    yield* scan.read()
    if (!scan.strings) return
    for (const edit of yield* this.texts.edits(scan.strings, data, eventOf(frame, scan)))
      scan.edits.push(edit)
  }

  /** Called by the event table. @param output whether this usage counts output. */
  addUsage(value: unknown, output: boolean): void {
    const usage = usageOfMessages(value, this.#usage)
    if (usage === null) return
    this.#usage = usage
    this.#outputCounted ||= output
  }

  /** Some upstreams omit `message_stop` after the stop reason; official clients throw without it. */
  *closingFrames(): Slices<HeldFrame[] | null> {
    if (this.ended) return []
    if (!this.stopped) return null
    return [...(yield* this.texts.end(null)), { bytes: MESSAGE_STOP, released: 0, withheld: 0 }]
  }

  get passesUnread(): boolean {
    return leavesTextsUnchanged(this.#context)
  }

  /** Usage reported before the stop reason is not final. */
  usage(): { usage: Usage; final: boolean } | null {
    const final = this.#outputCounted && (this.stopped || this.ended)
    return this.#usage && { usage: this.#usage, final }
  }
}

/** Index of the block that a delta or stop belongs to. */
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

const THINKING_TYPES: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking'])

type EventHandler = (reader: MessagesStreamReader, scan: EventScan) => FrameVerdict | Slices<FrameVerdict>

const forward: EventHandler = (_reader, scan) => ({ kind: 'forward', edits: scan.edits, started: true })

/** Events that the gateway reads; all others pass unchanged. */
const EVENTS: Record<string, EventHandler> = {
  message_start(reader, scan) {
    reader.addUsage(scan.parse('message', 'usage'), false)
    return forward(reader, scan)
  },
  content_block_start(reader, scan) {
    reader.reasoned ||= THINKING_TYPES.has(scan.parse('content_block', 'type'))
    return forward(reader, scan)
  },
  *content_block_delta(reader, scan) {
    reader.textBytes += scan.textBytes
    if (!scan.isSignature) return { kind: 'forward', edits: scan.edits, started: true }
    // The signature ends the thinking, so that all of its changes are known here.
    const block = blockOf(scan) ?? 0
    const before = yield* reader.texts.end(block)
    if (reader.texts.changedThinking.has(block)) scan.removeSignature()
    return { kind: 'forward', edits: scan.edits, started: true, before }
  },
  *content_block_stop(reader, scan) {
    const before = yield* reader.texts.end(blockOf(scan))
    return { kind: 'forward', edits: scan.edits, started: true, before }
  },
  message_delta(reader, scan) {
    reader.addUsage(scan.parse('usage'), true)
    reader.stopped ||= typeof scan.parse('delta', 'stop_reason') === 'string'
    return forward(reader, scan)
  },
  *message_stop(reader, scan) {
    reader.ended = true
    return { kind: 'forward', edits: scan.edits, started: true, before: yield* reader.texts.end(null) }
  },
  ping: (_reader, scan) => ({ kind: 'forward', edits: scan.edits, started: false }),
  error(_reader, scan) {
    const body = objectOf(scan.edited())
    const message = textOf(objectOf(body.error).message) || 'The upstream reported an error.'
    return { kind: 'failure', message, forward: scan.edits, body }
  },
}
