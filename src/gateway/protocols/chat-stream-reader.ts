import type { Usage } from '../../ledger/audit-record.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { Slices } from '../../lib/slices.ts'
import { encodeFrame, type SseFrame } from '../../lib/sse.ts'
import { ChunkScan } from './chunk-scan.ts'
import { type ChunkHead, ChunkTexts } from './chunk-texts.ts'
import { editedJson, moveToFrame, scanFrame } from './frame-json.ts'
import { alikeVerdict, FrameTemplate } from './frame-template.ts'
import { type Json, objectOf, textOf } from './json.ts'
import { isOverload } from './overload.ts'
import {
  type AlikeVerdict,
  type AnswerContext,
  type FrameVerdict,
  leavesTextsUnchanged,
  type StreamReader,
} from './protocol.ts'
import { usageOfChat } from './reported-usage.ts'
import type { HeldFrame } from './streamed-texts.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export class ChatStreamReader implements StreamReader {
  ended = false
  textBytes = 0
  reasoned = false
  /** Choices that have begun, and those that have a finish reason. */
  readonly #begun = new Set<number>()
  readonly #finished = new Set<number>()
  #usage: Usage | null = null
  /** The usage came with the last finish reason or after it. */
  #usageIsLast = false
  /** Whether a chunk had a member `usage` or no choices. If none had, the following chunks have no usage either. */
  #mayHaveUsage = false
  readonly #context: AnswerContext
  readonly #texts: ChunkTexts
  /** Members of the last chunk that our own chunks repeat; kept only where texts are inspected. */
  #head: ChunkHead | null = null
  /** Template of the last chunk that was scanned and had only text; null before it, and under a policy. */
  #template: FrameTemplate | null = null

  constructor(context: AnswerContext) {
    this.#context = context
    this.#texts = new ChunkTexts(context)
  }

  *read(frame: SseFrame): Slices<FrameVerdict> {
    const { inspection } = this.#context
    if (frame.data === null) {
      inspection.endUnit(frame.bytes.length)
      // Comments of the upstream are its own heartbeats; ours run on our clock.
      return { kind: 'drop' }
    }
    if (isDone(frame.data)) {
      this.ended = true
      inspection.endUnit(frame.bytes.length)
      const before = yield* this.#held(null)
      return { kind: 'forward', edits: exactDone(frame.data, frame.dataStart), started: false, before }
    }
    return this.readAlike(frame) ?? (yield* this.#readChunk(frame, frame.data))
  }

  readAlike(frame: SseFrame): AlikeVerdict | null {
    const { data } = frame
    const effects = data && frame.event === null ? this.#template?.effectsOf(data) : null
    if (!effects) return null
    this.textBytes += effects.textBytes
    return alikeVerdict(effects, frame, this.#context.inspection)
  }

  *#readChunk(frame: SseFrame, data: Uint8Array): Slices<FrameVerdict> {
    const { inspected } = this.#context.inspection.counts
    const scan = new ChunkScan(data, this.#context, true)
    const before: HeldFrame[] = []
    const failure = yield* scanFrame(frame, this.#context.inspection, this.#inspectChunk(data, scan, before))
    if (failure) return failure
    if (scan.strings) this.#head = scan.head
    if (scan.error || (scan.isError && !scan.hasChoices) || frame.event === 'error') {
      return { kind: 'failure', forward: null, ...errorOf(data, scan) }
    }
    this.textBytes += scan.textBytes
    this.reasoned ||= scan.reasons
    for (const [position, index] of scan.choices.entries()) {
      this.#begun.add(index)
      if (scan.finished.has(position)) this.#finished.add(index)
    }
    const usage = usageOfChat(scan.usageValue())
    if (usage) {
      this.#usage = usage
      this.#usageIsLast = this.#isComplete
    }
    for (const position of scan.finished)
      before.push(...(yield* this.#held(scan.choices[position] ?? position)))
    const verdict = this.#editUsage(scan, before)
    const isOnlyText = verdict.kind === 'forward' && !usage && scan.finished.size === 0
    if (isOnlyText && frame.event === null && scan.changing.length > 0) this.#learn(data, scan, inspected)
    moveToFrame(scan.edits, frame)
    return verdict
  }

  /** @param before takes frames that are sent ahead of the chunk. */
  *#inspectChunk(data: Uint8Array, scan: ChunkScan, before: HeldFrame[]): Slices<void> {
    yield* scan.read()
    if (!scan.strings) return
    if (this.#texts.inBlocks) {
      for (const frame of yield* this.#texts.endedParts(scan.strings, scan, this.#head ?? []))
        before.push(frame)
    }
    for (const edit of yield* this.#texts.edits(scan.strings, data, scan)) scan.edits.push(edit)
  }

  /** @param before how many bytes had been inspected before the chunk. */
  #learn(data: Uint8Array, { changing, edits, textBytes }: ChunkScan, before: number): void {
    const inspected = this.#context.inspection.counts.inspected - before
    this.#template = new FrameTemplate(data, changing, { edits, textBytes, inspected })
  }

  /** Frames with the held-back text of a choice, or of all choices. */
  *#held(choice: number | null): Slices<HeldFrame[]> {
    return this.#head ? yield* this.#texts.end(choice, this.#head) : []
  }

  /** Interface, chat completion object: usage is omitted from intermediate chunks, and sent only on request. */
  #editUsage(scan: ChunkScan, before: HeldFrame[]): FrameVerdict {
    this.#mayHaveUsage ||= scan.usage !== null || scan.choices.length === 0
    // A translation ignores a null usage, so it is not cut out.
    const isIgnored = scan.usage?.kind === 'null' && Boolean(this.#context.translatedTo)
    if (scan.usage && !isIgnored) {
      const unasked = scan.usage.kind === 'object' && !this.#context.usageRequested
      if (unasked && scan.choices.length === 0) return { kind: 'drop' }
      const intermediate = scan.choices.length > 0 && scan.finished.size === 0
      if (unasked || intermediate || scan.usage.kind === 'null') scan.removeUsage()
    }
    return { kind: 'forward', edits: scan.edits, started: true, before }
  }

  /** Some upstreams omit `[DONE]` after the finish reasons; clients wait for it. */
  *closingFrames(): Slices<HeldFrame[] | null> {
    if (this.ended) return []
    if (!this.#isComplete) return null
    this.#usageIsLast = true
    return [...(yield* this.#held(null)), { bytes: encodeFrame(null, DONE), released: 0, withheld: 0 }]
  }

  /** Every choice that has begun has its finish reason. */
  get #isComplete(): boolean {
    return this.#begun.size > 0 && this.#finished.size === this.#begun.size
  }

  /**
   * Usage that was not requested is cut out, and so is the `usage: null` that some upstreams write into every chunk.
   */
  get passesUnread(): boolean {
    return leavesTextsUnchanged(this.#context) && this.#context.usageRequested && !this.#mayHaveUsage
  }

  get usagePending(): boolean {
    return this.#isComplete && !this.ended && !this.#usageIsLast
  }

  /** Usage reported before the last finish reason is not final. */
  usage(): { usage: Usage; final: boolean } | null {
    return this.#usage && { usage: this.#usage, final: this.ended || this.#usageIsLast }
  }
}

export const DONE = '[DONE]'
const isDone = (data: Uint8Array) => data.length < 12 && decoder.decode(data).trim() === DONE

/** Official clients compare the payload exactly: spaces around it would keep them waiting. */
function exactDone(data: Uint8Array, start: number): ByteEdit[] {
  if (data.length === DONE.length) return []
  return [{ start, end: start + data.length, replacement: encoder.encode(DONE) }]
}

/** The upstream's error after the edits of its chunk. */
function errorOf(data: Uint8Array, scan: ChunkScan): { message: string; body: Json; isOverload?: true } {
  const edited = editedJson(data, scan.edits)
  const body = scan.error ? objectOf(edited) : { error: edited }
  const { error } = body
  const members = objectOf(error)
  const message = typeof error === 'string' ? error : textOf(members.message)
  const known = message || 'The upstream reported an error.'
  return { message: known, body, ...(isOverload(members) && { isOverload: true }) }
}
