import type { Inspection } from '../../governance/dlp/inspection.ts'
import { ApiError } from '../../lib/api-error.ts'
import { applyEdits, joinBytes } from '../../lib/byte-edits.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { type FrameReader, FrameTooLongError, parseFrame, type SseFrame } from '../../lib/sse.ts'
import type { FrameVerdict, StreamReader } from '../protocols/protocol.ts'
import type { HeldFrame } from '../protocols/streamed-texts.ts'

/**
 * What is done with the frames of an upstream's stream: each is read by its protocol, inspected, edited, counted, and
 * converted into what the caller takes. No I/O: chunks in, units for the caller out.
 */

/** Makes units for the caller, frames or events, of frames as the upstream's reader lets them pass. */
export interface FrameConverter<Unit> {
  convert(frame: SseFrame): Unit[]
  /** Units that end the caller's stream. */
  finish(): Unit[]
}

export interface PipelineOptions<Unit> {
  frames: FrameReader
  reader: StreamReader
  inspection: Inspection
  converter: FrameConverter<Unit>
  /** Whether frames pass as they are: the upstream's own frame tells an error best then. */
  passes: boolean
  /** Cuts our credential out of what an upstream says about an error. */
  redact: (bytes: Uint8Array) => Uint8Array
}

export type FailureReason = 'empty' | 'cut' | 'timeout' | 'error'

/** How a stream ended, as far as the upstream and its frames are concerned. */
export type PipelineEnd<Unit> =
  | { kind: 'completed' }
  | {
      kind: 'failed'
      reason: FailureReason
      message: string
      /** The upstream's own frames for the failure; null leaves it to the caller's dialect. */
      farewell: Unit[] | null
      /** When the gateway itself ended it. */
      error?: ApiError
    }

/** Characters of what an upstream says about its failure. */
const LONGEST_MESSAGE = 4_096
const encoder = new TextEncoder()
const decoder = new TextDecoder()

export class StreamPipeline<Unit> {
  /** A valid event came. */
  started = false
  /** The caller's stream has begun, with or without an event: an end without one is an end now. */
  committed = false
  end: PipelineEnd<Unit> | null = null
  /** A frame that left unread should have been changed. */
  missedEdit = false
  readonly #options: PipelineOptions<Unit>

  constructor(options: PipelineOptions<Unit>) {
    this.#options = options
  }

  /** Takes a chunk of the upstream. @returns what goes to the caller; `end` tells whether that was the last of it. */
  push(chunk: Uint8Array): Unit[] {
    const units: Unit[] = []
    try {
      for (const frame of this.#options.frames.push(chunk)) {
        if (this.end) break
        this.#frame(frame, units)
        if (this.#options.reader.ended && (this.started || this.committed)) this.#complete([], units)
      }
    } catch (error) {
      this.#failBy(error)
    }
    return units
  }

  /** Takes a chunk that has left as it came: it is read, metered and counted, and nothing is made of it. */
  observe(chunk: Uint8Array): void {
    try {
      for (const frame of this.#options.frames.push(chunk)) this.#observeFrame(frame)
    } catch (error) {
      this.#failBy(error)
    }
  }

  /** The beginning of a frame has left, and nothing follows it. @returns whether there was one. */
  observeTornFrame(): boolean {
    const { frames, inspection } = this.#options
    const { length } = frames.unfinished
    inspection.endUnit(length)
    inspection.sink(length, 0)
    return length > 0
  }

  /** What has come of a frame that is not complete yet. */
  get unfinished(): Uint8Array {
    return this.#options.frames.unfinished
  }

  /** Whether what follows may leave without being read before. */
  get passesUnread(): boolean {
    return this.started && this.end === null && this.#options.passes && this.#options.reader.passesUnread
  }

  /** The upstream closed its stream: an end, or less than one. @returns the last units for the caller. */
  close(): Unit[] {
    const units: Unit[] = []
    if (this.end) return units
    const { reader } = this.#options
    try {
      const due = reader.closingFrames()
      if (due !== null && (this.started || this.committed)) this.#complete(due, units)
      else if (this.started) this.fail('cut', 'The upstream ended its answer early.')
      else this.fail('empty', 'The upstream sent an empty answer.')
    } catch (error) {
      this.#failBy(error)
    }
    return units
  }

  /** Ends the stream with a failure, unless it has ended. */
  fail(reason: FailureReason, message: string, farewell: Unit[] | null = null, error?: ApiError): void {
    this.end ??= { kind: 'failed', reason, message, farewell, ...(error && { error }) }
  }

  /** What was held back will not be sent. */
  abandon(): void {
    this.#options.inspection.abandon()
  }

  #frame(frame: SseFrame, units: Unit[]): void {
    const { inspection } = this.#options
    inspection.begin()
    const verdict = this.#verdictOn(frame)
    if (verdict.kind === 'drop') inspection.sink(0, frame.bytes.length)
    else if (verdict.kind === 'failure') this.#upstreamError(frame, verdict)
    else {
      this.started ||= verdict.started
      for (const held of verdict.before ?? []) this.#release(held, units)
      if (verdict.edits.length === 0) {
        inspection.sink(frame.bytes.length, 0)
        units.push(...this.#options.converter.convert(frame))
        return
      }
      const edited = applyEdits(frame.bytes, verdict.edits)
      inspection.sink(edited.released, edited.withheld)
      units.push(...this.#options.converter.convert(parseFrame(joinBytes(edited.pieces))))
    }
  }

  #observeFrame(frame: SseFrame): void {
    const { inspection, reader } = this.#options
    inspection.begin()
    if (this.end) inspection.endUnit(frame.bytes.length)
    else {
      const verdict = this.#verdictOn(frame)
      if (verdict.kind === 'failure')
        this.fail('error', this.#ownWords(verdict.message), verdict.forward && [])
      else if (frame.data !== null) this.missedEdit ||= verdict.kind === 'drop' || verdict.edits.length > 0
      if (reader.ended) this.end ??= { kind: 'completed' }
    }
    inspection.sink(frame.bytes.length, 0)
  }

  /** @throws ApiError for a frame that must not pass. */
  #verdictOn(frame: SseFrame): FrameVerdict {
    try {
      return this.#options.reader.read(frame)
    } catch (error) {
      this.#options.inspection.refuse(frame.bytes.length)
      throw error
    }
  }

  /** A frame of ours with what was held back. */
  #release({ bytes, released, withheld }: HeldFrame, units: Unit[]): void {
    this.#options.inspection.sink(released, withheld)
    units.push(...this.#options.converter.convert(parseFrame(bytes)))
  }

  #complete(due: readonly HeldFrame[], units: Unit[]): void {
    for (const held of due) this.#release(held, units)
    units.push(...this.#options.converter.finish())
    this.end ??= { kind: 'completed' }
  }

  /** Only where the upstream's own frame is sent does anything of it leave, as it was inspected. */
  #upstreamError(frame: SseFrame, verdict: Extract<FrameVerdict, { kind: 'failure' }>): void {
    const { inspection, redact, passes, converter } = this.#options
    const message = this.#ownWords(verdict.message)
    if (verdict.forward === null || !passes) {
      inspection.refuse(frame.bytes.length)
      this.fail('error', message)
      return
    }
    const edited = applyEdits(frame.bytes, verdict.forward)
    inspection.sink(edited.released, edited.withheld)
    const told = converter.convert(parseFrame(redact(joinBytes(edited.pieces))))
    this.fail('error', message, told)
  }

  /** The upstream's message as it may be told. */
  #ownWords(message: string): string {
    return decoder.decode(this.#options.redact(encoder.encode(message))).slice(0, LONGEST_MESSAGE)
  }

  #failBy(error: unknown): void {
    if (error instanceof ApiError) {
      this.fail('error', error.message, null, error)
      return
    }
    const tooLong = error instanceof FrameTooLongError
    if (!tooLong) logEvent('error', 'stream_reader_failed', { error: errorText(error) })
    this.fail(
      'error',
      tooLong ? 'The upstream sent an event that is too long.' : 'The gateway could not read the answer.',
    )
  }
}

/** Frames of one protocol on both sides. */
export const PASSED_FRAMES: FrameConverter<Uint8Array> = {
  convert: ({ bytes }) => [bytes],
  finish: () => [],
}
