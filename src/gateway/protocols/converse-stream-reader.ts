import type { Usage } from '../../ledger/audit-record.ts'
import type { Slices } from '../../lib/slices.ts'
import type { SseFrame } from '../../lib/sse.ts'
import { malformedTurn } from './converse-endings.ts'
import { ConverseScan, type PieceName } from './converse-scan.ts'
import { moveToFrame, scanFrame } from './frame-json.ts'
import { objectOf, textOf } from './json.ts'
import { isOverload } from './overload.ts'
import type { AnswerContext, FrameVerdict, StreamReader } from './protocol.ts'
import { usageOfConverse } from './reported-usage.ts'
import { type HeldFrame, heldFrame, inspectPiece } from './streamed-texts.ts'

/** Type of the events that hold pieces of texts. */
const STREAMING = 'contentBlockDelta'

/**
 * Reads a stream of Converse, whose events have their names as frames of the binary framing do. `messageStop` ends the
 * answer, and `metadata`, which follows it, has the usage.
 */
export class ConverseStreamReader implements StreamReader {
  textBytes = 0
  reasoned = false
  /** Its callers speak another protocol, so that every frame is read. */
  readonly passesUnread = false
  readonly #context: AnswerContext
  /** The block that pieces of texts came of. */
  #block: number | null = null
  /** Whether reasoning of the block has another text than the model wrote. */
  #changedReasoning = false
  #stopped = false
  /** The message of a malformed ending: the failure waits for the usage, because the provider charges for it. */
  #malformed: string | null = null
  #usage: Usage | null = null

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
    const scan = new ConverseScan(data, this.#context, true)
    const before: HeldFrame[] = []
    const failure = yield* scanFrame(frame, inspection, this.#inspect(frame.event, data, scan, before))
    if (failure) return failure
    this.textBytes += scan.textBytes
    this.reasoned ||= scan.hasReasoning
    if (frame.event === 'error') return errorOf(scan)
    const ending = this.#note(frame.event, scan)
    if (ending) return ending
    moveToFrame(scan.edits, frame)
    return { kind: 'forward', edits: scan.edits, started: true, before }
  }

  /** @returns the verdict on an event of a malformed ending; null for any other. */
  #note(event: string | null, scan: ConverseScan): FrameVerdict | null {
    if (event === 'messageStop') {
      this.#stopped = true
      this.#malformed = malformedTurn(scan.parse('stopReason'))
    }
    this.#usage = usageOfConverse(scan.parse('usage')) ?? this.#usage
    if (this.#malformed === null) return null
    return this.#usage === null
      ? { kind: 'drop' }
      : { kind: 'failure', message: this.#malformed, forward: null }
  }

  /**
   * Inspects an event. Texts end with their block, with its signature, and where a piece of another block comes: some
   * models leave the event of the end out.
   * @param before takes frames that are sent ahead of the event.
   */
  *#inspect(event: string | null, data: Uint8Array, scan: ConverseScan, before: HeldFrame[]): Slices<void> {
    yield* scan.read()
    if (this.#context.inspection.engine.passive) return
    const index = scan.parse('contentBlockIndex')
    const block = typeof index === 'number' ? index : null
    const ends = event !== STREAMING || scan.signature !== null || block !== this.#block
    if (ends && event !== null) for (const frame of yield* this.#end()) before.push(frame)
    if (block !== this.#block) {
      this.#block = block
      this.#changedReasoning = false
    }
    for (const piece of scan.pieces) yield* this.#piece(piece, data, scan)
    if (this.#changedReasoning) scan.removeSignature()
  }

  *#piece(piece: ConverseScan['pieces'][number], data: Uint8Array, scan: ConverseScan): Slices<void> {
    const { name } = piece
    const json = name === 'input'
    const kind = json ? 'tool_arguments' : 'response'
    const text = { key: keyOf(this.#block, name), kind, json, last: false } as const
    const edit = yield* inspectPiece(this.#context.inspection, piece, data, text)
    if (!edit) return
    if (name === 'reasoning' && (edit.withheld ?? edit.end - edit.start) > 0) this.#changedReasoning = true
    scan.edits.push(edit)
  }

  /** Ends all texts, in slices. @returns frames with what was held back of them. */
  *#end(): Slices<HeldFrame[]> {
    const ended = yield* this.#context.inspection.end('')
    return ended.map((held) => {
      const [index = '0', name = 'text'] = held.key.split(':')
      if (name === 'reasoning' && held.withheld > 0) this.#changedReasoning = true
      return heldFrame(STREAMING, held, (text) => ({
        contentBlockIndex: Number(index),
        delta: DELTAS[name as PieceName](text),
      }))
    })
  }

  /** The usage comes after the end of the answer. */
  get ended(): boolean {
    return this.#stopped && this.#malformed === null && this.#usage !== null
  }

  get usagePending(): boolean {
    return this.#stopped && this.#malformed === null && this.#usage === null
  }

  *closingFrames(): Slices<HeldFrame[] | null> {
    if (!this.#stopped || this.#malformed !== null) return null
    return yield* this.#end()
  }

  usage(): { usage: Usage; final: boolean } | null {
    return this.#usage && { usage: this.#usage, final: this.#stopped }
  }
}

const keyOf = (block: number | null, name: PieceName): string => `${block ?? 0}:${name}`

/** The delta with a piece of a text. */
const DELTAS: Record<PieceName, (text: string) => unknown> = {
  text: (text) => ({ text }),
  reasoning: (text) => ({ reasoningContent: { text } }),
  input: (input) => ({ toolUse: { input } }),
}

/** @param scan of an exception, which has the form of an error of the messages protocol. */
function errorOf(scan: ConverseScan): FrameVerdict {
  const body = scan.edited()
  const error = objectOf(body.error)
  return {
    kind: 'failure',
    message: textOf(error.message) || 'The upstream reported an error.',
    forward: null,
    body,
    ...(isOverload(error) && { isOverload: true }),
  }
}
