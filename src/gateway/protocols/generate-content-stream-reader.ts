import type { Usage } from '../../ledger/audit-record.ts'
import type { Slices } from '../../lib/slices.ts'
import type { SseFrame } from '../../lib/sse.ts'
import { moveToFrame, scanFrame } from './frame-json.ts'
import { malformedAnswer } from './generate-content-endings.ts'
import { GenerateContentScan, type ScannedCandidate, type ScannedPart } from './generate-content-scan.ts'
import { type Json, objectOf, textOf } from './json.ts'
import type { AnswerContext, FrameVerdict, StreamReader } from './protocol.ts'
import { usageOfGenerateContent } from './reported-usage.ts'
import { type HeldFrame, heldFrame, inspectPiece } from './streamed-texts.ts'

/** Texts that continue over chunks. */
type Continued = 'text' | 'thought'

/** Status of an error by an overload (https://ai.google.dev/gemini-api/docs/troubleshooting). */
const OVERLOADED = 'UNAVAILABLE'

/**
 * Reads a stream of generateContent: chunks without names, each with increments of texts, whole calls, and usage so far. Its
 * last chunk has the finish reason.
 */
export class GenerateContentStreamReader implements StreamReader {
  textBytes = 0
  reasoned = false
  /** Its callers speak another protocol, so that every frame is read. */
  readonly passesUnread = false
  readonly #context: AnswerContext
  readonly #begun = new Set<number>()
  readonly #finished = new Set<number>()
  /** The text of each candidate that the next chunk may continue. */
  readonly #open = new Map<number, Continued>()
  #isBlocked = false
  #usage: Usage | null = null
  /** The usage came with the last finish reason or after it. */
  #usageIsLast = false

  constructor(context: AnswerContext) {
    this.#context = context
  }

  readAlike(): null {
    return null
  }

  *read(frame: SseFrame): Slices<FrameVerdict> {
    const { inspection } = this.#context
    const { data } = frame
    if (data === null) {
      inspection.endUnit(frame.bytes.length)
      return { kind: 'drop' }
    }
    const scan = new GenerateContentScan(data, this.#context, true)
    const before: HeldFrame[] = []
    const failure = yield* scanFrame(frame, inspection, this.#inspect(data, scan, before))
    if (failure) return failure
    if (scan.error) return errorOf(scan.edited())
    this.textBytes += scan.textBytes
    this.#note(scan)
    if (scan.isMalformed) {
      const message = malformedAnswer(scan.edited()) ?? ''
      return { kind: 'failure', message, forward: null }
    }
    moveToFrame(scan.edits, frame)
    return { kind: 'forward', edits: scan.edits, started: true, before }
  }

  #note(scan: GenerateContentScan): void {
    for (const { index, parts, finishReason } of scan.candidates) {
      this.#begun.add(index)
      if (finishReason !== null) this.#finished.add(index)
      this.reasoned ||= parts.some(({ kind }) => kind === 'thought')
    }
    this.#isBlocked ||= scan.isBlocked
    const usage = usageOfGenerateContent(scan.usageValue())
    if (!usage) return
    this.#usage = usage
    this.#usageIsLast = this.#isComplete
  }

  /** @param before takes frames that are sent ahead of the chunk. */
  *#inspect(data: Uint8Array, scan: GenerateContentScan, before: HeldFrame[]): Slices<void> {
    yield* scan.read()
    if (this.#context.inspection.engine.passive) return
    for (const candidate of scan.candidates) {
      const texts = this.#candidateTexts(candidate, data, scan)
      for (const frame of yield* texts) before.push(frame)
    }
    scan.removeSignatures()
  }

  /**
   * Inspects the texts of a candidate in a chunk. A text ends where a part of another kind follows, with the signature that
   * signs it, and with its candidate.
   * @returns frames with text that was held back of earlier chunks.
   */
  *#candidateTexts(
    { index, parts, finishReason }: ScannedCandidate,
    data: Uint8Array,
    scan: GenerateContentScan,
  ): Slices<HeldFrame[]> {
    const before: HeldFrame[] = []
    for (const [position, part] of parts.entries()) {
      const open = this.#open.get(index)
      if (open !== undefined && part.kind !== open) before.push(...(yield* this.#end(index)))
      if (!part.text || !isContinued(part.kind)) continue
      const next = parts[position + 1]
      const last = part.signature !== null || (next ? next.kind !== part.kind : finishReason !== null)
      const text = { key: keyOf(index, part.kind), kind: 'response', json: false, last } as const
      const string = { path: ['candidates', index, 'content', 'parts', part.kind], ...part.text }
      const edit = yield* inspectPiece(this.#context.inspection, string, data, text)
      if (edit) scan.edits.push(edit)
      if (last) this.#open.delete(index)
      else this.#open.set(index, part.kind)
    }
    return finishReason === null ? before : [...before, ...(yield* this.#end(index))]
  }

  /** Ends the texts of a candidate, in slices. @returns frames with what was held back of them. */
  *#end(index: number): Slices<HeldFrame[]> {
    this.#open.delete(index)
    const ended = yield* this.#context.inspection.end(`${index}:`)
    return ended.map((held) => {
      const isThought = held.key === keyOf(index, 'thought')
      return heldFrame(null, held, (text) => {
        const part = { ...(isThought && { thought: true }), text }
        return { candidates: [{ index, content: { role: 'model', parts: [part] } }] }
      })
    })
  }

  get #isComplete(): boolean {
    return this.#isBlocked || (this.#begun.size > 0 && this.#finished.size === this.#begun.size)
  }

  /** There is no event for the end: the last chunk has the finish reason and the usage. */
  get ended(): boolean {
    return this.#isComplete && this.#usageIsLast
  }

  get usagePending(): boolean {
    return this.#isComplete && !this.#usageIsLast
  }

  *closingFrames(): Slices<HeldFrame[] | null> {
    if (!this.#isComplete) return null
    const frames: HeldFrame[] = []
    for (const index of [...this.#open.keys()]) frames.push(...(yield* this.#end(index)))
    return frames
  }

  usage(): { usage: Usage; final: boolean } | null {
    return this.#usage && { usage: this.#usage, final: this.#usageIsLast }
  }
}

const keyOf = (index: number, kind: Continued): string => `${index}:${kind}`

const isContinued = (kind: ScannedPart['kind']): kind is Continued => kind === 'text' || kind === 'thought'

/** @param body of a chunk with an error, edited. */
function errorOf(body: Json): FrameVerdict {
  const { message, status } = objectOf(body.error)
  const isOverload = status === OVERLOADED
  return {
    kind: 'failure',
    message: textOf(message) || 'The upstream reported an error.',
    forward: null,
    body,
    ...(isOverload && { isOverload }),
  }
}
