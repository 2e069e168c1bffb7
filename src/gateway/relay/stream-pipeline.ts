import type { Inspection } from '../../dlp/inspection.ts'
import { ApiError } from '../../lib/api-error.ts'
import { applyEditsInSlices, type ByteEdit, editedBytes, joinBytesInSlices } from '../../lib/byte-edits.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { drained, type Slices } from '../../lib/slices.ts'
import { type FrameReader, FramingError, parseFrame, type SseFrame } from '../../lib/sse.ts'
import type { FrameVerdict, StreamReader } from '../protocols/protocol.ts'
import type { HeldFrame } from '../protocols/streamed-texts.ts'
import type { FailureDetails, FailureReason, PipelineEnd } from './pipeline-end.ts'

/**
 * Each frame of an upstream's stream is read by its protocol, inspected, edited, counted, and converted into units for
 * the caller. No I/O: chunks in, units out.
 */

/** Converts frames, after inspection and edits, into units for the caller: frames or events. */
export interface FrameConverter<Unit> {
  convert(frame: SseFrame): Unit[]
  /** Converts a frame from its bytes alone. */
  pass?(bytes: Uint8Array): Unit[]
  /** The units that end the caller's stream. */
  finish(): Unit[]
  /** The units of a failure by an overload; absent where the caller's failures have no such type. */
  overload?(message: string): Unit[]
}

interface PipelineOptions<Unit> {
  frames: FrameReader
  reader: StreamReader
  inspection: Inspection
  converter: FrameConverter<Unit>
  /** Whether caller and upstream speak the same protocol: an error frame of the upstream then passes as it is. */
  passes: boolean
  /** Cuts the gateway's credential out of an upstream's error. */
  redact: (bytes: Uint8Array) => Uint8Array
  /** Edits a frame of the answer. @returns the same array if nothing changes */
  redactFrame: (bytes: Uint8Array) => Uint8Array
}

/** Characters of an upstream's error message. */
const LONGEST_MESSAGE = 4_096
const encoder = new TextEncoder()
const decoder = new TextDecoder()

export class StreamPipeline<Unit> {
  /** A valid event came. */
  started = false
  /** The caller's stream has begun, with or without an event: from now on an end without an event completes it. */
  committed = false
  end: PipelineEnd<Unit> | null = null
  /** Frames that have arrived. */
  events = 0
  /** A frame was edited, or not sent. */
  edited = false
  /** A frame that was passed unread should have been edited. */
  missedEdit = false
  /** A frame repeated the gateway's credential. */
  #echoed = false
  readonly #options: PipelineOptions<Unit>

  constructor(options: PipelineOptions<Unit>) {
    this.#options = options
  }

  /** Takes a chunk of the upstream, in slices. @returns units for the caller, the last ones when `end` is set. */
  *push(chunk: Uint8Array): Slices<Unit[]> {
    const units: Unit[] = []
    try {
      for (const frame of this.#options.frames.push(chunk)) {
        if (this.end) break
        this.events++
        if (!this.#takeAlike(frame, units)) yield* this.#frame(frame, units)
        if (this.#options.reader.ended && (this.started || this.committed)) this.#complete([], units)
      }
    } catch (error) {
      this.#failBy(error)
    }
    return units
  }

  /** Takes a chunk that was passed to the caller unread: it is metered and counted at once, and yields no units. */
  observe(chunk: Uint8Array): void {
    try {
      for (const frame of this.#options.frames.push(chunk)) {
        this.events++
        this.#observeFrame(frame)
      }
    } catch (error) {
      this.#failBy(error)
    }
  }

  /** Counts the beginning of a frame that was passed to the caller unread and has no end. @returns whether there is one. */
  observeTornFrame(): boolean {
    const { length } = this.unfinished
    this.#options.inspection.endUnit(length)
    this.#options.inspection.sink(length, 0)
    return length > 0
  }

  /** The beginning of a frame that is not complete yet. */
  get unfinished(): Uint8Array {
    return this.#options.frames.unfinished
  }

  /** Whether the rest of the stream can be passed to the caller unread. */
  get passesUnread(): boolean {
    const { passes, reader } = this.#options
    return this.started && this.end === null && !this.#echoed && passes && reader.passesUnread
  }

  /** The upstream closed its stream, at its end or before. @returns the last units for the caller, in slices. */
  *close(): Slices<Unit[]> {
    const units: Unit[] = []
    if (this.end) return units
    const { reader } = this.#options
    try {
      const due = yield* reader.closingFrames()
      if (due !== null && (this.started || this.committed)) this.#complete(due, units)
      else if (this.started) this.fail('cut', 'The upstream ended its answer early.')
      else this.fail('empty', 'The upstream sent an empty answer.')
    } catch (error) {
      this.#failBy(error)
    }
    return units
  }

  /** Ends the stream with a failure, unless it has ended. */
  fail(
    reason: FailureReason,
    message: string,
    { failureUnits, error, body }: FailureDetails<Unit> = {},
  ): void {
    this.end ??= {
      kind: 'failed',
      reason,
      message,
      ...(failureUnits && { failureUnits }),
      ...(error && { error }),
      ...(body && { body }),
    }
  }

  /** Counts what is held back as withheld: it will not be sent. */
  abandon(): void {
    this.#options.inspection.abandon()
  }

  /** Begins a frame, and takes it where it differs from an earlier one in its texts alone. @returns false for any other. */
  #takeAlike(frame: SseFrame, units: Unit[]): boolean {
    const { inspection, reader } = this.#options
    inspection.begin()
    const verdict = reader.readAlike(frame)
    if (verdict === null) return false
    this.started ||= verdict.started
    this.edited ||= verdict.edits.length > 0
    const { bytes, released, withheld } = editedBytes(frame.bytes, verdict.edits)
    inspection.sink(released, withheld)
    const redacted = this.#withoutCredential(bytes)
    for (const unit of this.#converted(frame, redacted)) units.push(unit)
    return true
  }

  /** Takes a frame that `#takeAlike` has begun. */
  *#frame(frame: SseFrame, units: Unit[]): Slices<void> {
    const { inspection } = this.#options
    const verdict = yield* this.#verdictOn(frame)
    if (verdict.kind === 'drop') {
      inspection.sink(0, frame.bytes.length)
      this.edited ||= frame.data !== null
    } else if (verdict.kind === 'failure') yield* this.#upstreamError(frame, verdict)
    else {
      this.started ||= verdict.started
      for (const held of verdict.before ?? []) this.#release(held, units)
      const { edits } = verdict
      this.edited ||= edits.length > 0
      const bytes = edits.length > 0 ? yield* this.#edited(frame, edits) : this.#unedited(frame)
      for (const unit of this.#converted(frame, bytes)) units.push(unit)
    }
  }

  /** The bytes of the frame as it is sent, counted by the sink. @returns the frame's own where nothing changes. */
  *#edited(frame: SseFrame, edits: ByteEdit[]): Slices<Uint8Array> {
    const { pieces, released, withheld } = yield* applyEditsInSlices(frame.bytes, edits)
    this.#options.inspection.sink(released, withheld)
    return this.#withoutCredential(yield* joinBytesInSlices(pieces))
  }

  #unedited({ bytes }: SseFrame): Uint8Array {
    this.#options.inspection.sink(bytes.length, 0)
    return this.#withoutCredential(bytes)
  }

  #withoutCredential(bytes: Uint8Array): Uint8Array {
    const redacted = this.#options.redactFrame(bytes)
    if (redacted !== bytes) this.#echoed = true
    return redacted
  }

  /** @param bytes of the frame after its edits. */
  #converted(frame: SseFrame, bytes: Uint8Array): Unit[] {
    const { converter } = this.#options
    return converter.pass?.(bytes) ?? converter.convert(bytes === frame.bytes ? frame : parseFrame(bytes))
  }

  #observeFrame(frame: SseFrame): void {
    const { inspection, reader } = this.#options
    inspection.begin()
    if (this.end) inspection.endUnit(frame.bytes.length)
    else {
      const verdict = reader.readAlike(frame) ?? drained(this.#verdictOn(frame))
      if (verdict.kind === 'failure') {
        // The upstream's own frame, where it may pass, has passed already.
        this.fail('error', this.#redacted(verdict.message), verdict.forward ? { failureUnits: [] } : {})
      } else if (frame.data !== null) this.missedEdit ||= verdict.kind === 'drop' || verdict.edits.length > 0
      if (reader.ended) this.end ??= { kind: 'completed' }
    }
    inspection.sink(frame.bytes.length, 0)
  }

  /** @throws ApiError for a frame that must not pass. */
  *#verdictOn(frame: SseFrame): Slices<FrameVerdict> {
    try {
      return yield* this.#options.reader.read(frame)
    } catch (error) {
      this.#options.inspection.refuse(frame.bytes.length)
      throw error
    }
  }

  /** A frame of the gateway with text that was held back. */
  #release({ bytes, released, withheld }: HeldFrame, units: Unit[]): void {
    this.#options.inspection.sink(released, withheld)
    units.push(...this.#options.converter.convert(parseFrame(this.#withoutCredential(bytes))))
  }

  /** Completes the stream, unless it failed while its last event was inspected. */
  #complete(due: readonly HeldFrame[], units: Unit[]): void {
    if (this.end) return
    for (const held of due) this.#release(held, units)
    units.push(...this.#options.converter.finish())
    this.end = { kind: 'completed' }
  }

  /** The upstream's own frame is sent where it may pass; otherwise nothing of it but its message. */
  *#upstreamError(frame: SseFrame, verdict: Extract<FrameVerdict, { kind: 'failure' }>): Slices<void> {
    const { inspection, redact, passes, converter } = this.#options
    const message = this.#redacted(verdict.message)
    const { body } = verdict
    if (verdict.forward === null || !passes) {
      inspection.refuse(frame.bytes.length)
      const failureUnits = verdict.isOverload ? converter.overload?.(message) : undefined
      this.fail('error', message, { failureUnits, body })
      return
    }
    const bytes = yield* this.#edited(frame, verdict.forward)
    this.fail('error', message, { failureUnits: converter.convert(parseFrame(redact(bytes))), body })
  }

  #redacted(message: string): string {
    return decoder.decode(this.#options.redact(encoder.encode(message))).slice(0, LONGEST_MESSAGE)
  }

  #failBy(error: unknown): void {
    if (error instanceof ApiError) {
      this.fail('error', error.message, { error })
      return
    }
    const isUpstreams = error instanceof FramingError
    if (!isUpstreams) logEvent('error', 'stream_reader_failed', { error: errorText(error) })
    this.fail('error', isUpstreams ? error.message : 'The gateway could not read the answer.')
  }
}

/** Frames of one protocol on both sides. */
export const PASSED_FRAMES: FrameConverter<Uint8Array> = {
  convert: ({ bytes }) => [bytes],
  pass: (bytes) => [bytes],
  finish: () => [],
}
