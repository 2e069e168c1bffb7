import { inspectWhileScanning, WaitingTexts } from '../../dlp/waiting-texts.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { type JsonKind, type JsonPath, MAXIMUM_DEPTH } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { emptiedSignatures, type Place } from './edited-signatures.ts'
import { editedJson, jsonAt } from './frame-json.ts'
import { type Json, objectOf } from './json.ts'
import type { AnswerContext } from './protocol.ts'
import type { FrameString } from './streamed-texts.ts'
import { lastName } from './text-fields.ts'

/** The texts of a stream that deltas hold pieces of. */
export type PieceName = 'text' | 'reasoning' | 'input'

interface Piece extends FrameString {
  name: PieceName
}

/** Strings with these names are the vendor's words, ids and data. All others are texts, under any name. */
const TECHNICAL: ReadonlySet<string> = new Set([
  'format',
  // Padding of events.
  'p',
  'redactedContent',
  'role',
  'signature',
  'status',
  'stopReason',
  'toolUseId',
  'ttl',
  'type',
])
/** Index of a block in a path, as in `output.message.content.1`. */
const BLOCK = 3
/** Index of a member within the input of a call, as in `output.message.content.1.toolUse.input.city`. */
const INPUT = 6
/** Members of an event and of an answer. */
const DEEPEST_MEMBER = 1

const isInBlock = (path: JsonPath): boolean =>
  path[0] === 'output' && path[1] === 'message' && path[2] === 'content' && path.length > BLOCK
const isInCall = (path: JsonPath): boolean =>
  (isInBlock(path) && path[BLOCK + 1] === 'toolUse') || path[1] === 'toolUse'
const isInInput = (path: JsonPath): boolean =>
  isInBlock(path) && path[BLOCK + 1] === 'toolUse' && path[INPUT - 1] === 'input'
const isSignature = (path: JsonPath): boolean => lastName(path) === 'signature' && !isInInput(path)

/** The text that a string is a piece of; null for a whole one. */
function pieceOf(path: JsonPath): PieceName | null {
  if (path[0] !== 'delta') return null
  if (path.length === 2) return path[1] === 'text' ? 'text' : null
  if (path.length !== 3) return null
  if (path[1] === 'toolUse' && path[2] === 'input') return 'input'
  return path[1] === 'reasoningContent' && path[2] === 'text' ? 'reasoning' : null
}

/** Scans an answer or an event of Converse: finds blocks, signatures and members, and passes texts to the inspection. */
export class ConverseScan {
  /** Names and numbers in the input of calls are inspected at any depth. */
  readonly valueDepth: number
  readonly edits: ByteEdit[] = []
  /** Pieces of an event, which the reader of the stream inspects; none without a policy. */
  readonly pieces: Piece[] = []
  /** Contents of the signature in an event. */
  signature: Place | null = null
  hasOutput = false
  hasReasoning = false
  textBytes = 0
  readonly #bytes: Uint8Array
  readonly #waiting: WaitingTexts
  readonly #context: AnswerContext
  readonly #partial: boolean
  readonly #active: boolean
  readonly #members = new Map<string, Place>()
  /** Only for a whole answer, by block. */
  readonly #blocks = new Map<number, Place>()
  readonly #signatures = new Map<number, Place>()

  /** @param partial whether it is an event of a stream. */
  constructor(bytes: Uint8Array, context: AnswerContext, partial: boolean) {
    this.#bytes = bytes
    this.#waiting = new WaitingTexts(context.inspection, bytes)
    this.#context = context
    this.#active = !context.inspection.engine.passive
    this.#partial = partial
    this.valueDepth = this.#active ? MAXIMUM_DEPTH : DEEPEST_MEMBER
  }

  /** Scans it, and inspects all but the pieces of a stream, in slices. @throws JsonSyntaxError, ApiError `dlp_blocked`. */
  *read(): Slices<void> {
    for (const edit of yield* inspectWhileScanning(this.#bytes, this, this.#waiting)) this.edits.push(edit)
  }

  string(path: JsonPath, start: number, end: number): void {
    if (path.includes('reasoningContent') && !isInInput(path)) this.hasReasoning = true
    if (isSignature(path)) this.#noteSignature(path, { start, end })
    if (!isInInput(path)) {
      // Images that models draw.
      const isMedia = lastName(path) === 'bytes'
      if (isMedia && this.#active) this.#context.inspection.uninspectable('response')
      if (isMedia || TECHNICAL.has(lastName(path))) return
    }
    if (path[0] === 'delta' || isInBlock(path)) this.textBytes += end - start
    this.#text(path, start, end)
  }

  #text(path: JsonPath, start: number, end: number): void {
    const name = this.#partial ? pieceOf(path) : null
    if (!this.#active) this.#context.inspection.count(end - start)
    else if (name !== null) this.pieces.push({ name, path: [...path], start, end })
    else this.#waiting.addText(fieldOf(path), start, end)
  }

  #noteSignature(path: JsonPath, place: Place): void {
    if (isInBlock(path)) this.#signatures.set(Number(path[BLOCK]), place)
    else if (path[0] === 'delta') this.signature = place
  }

  value(
    path: JsonPath,
    kind: JsonKind,
    start: number,
    end: number,
    memberStart: number,
    nameEnd: number,
  ): void {
    if (path.length === 1) this.#member(String(path[0]), kind, { start, end })
    else if (isInInput(path)) {
      if (!this.#active) return
      // The name of the input itself is the protocol's.
      const inner = path.length === INPUT ? [] : path
      this.#waiting.addValue({ path: inner, start, end, memberStart, nameEnd }, kind, 'tool_arguments')
    } else if (path.length === BLOCK + 1 && isInBlock(path)) {
      this.#blocks.set(Number(path[BLOCK]), { start, end })
    }
  }

  #member(name: string, kind: JsonKind, place: Place): void {
    if (kind === 'null') return
    this.#members.set(name, place)
    if (name === 'output') this.hasOutput = true
  }

  /** Whether it has the members of an error. */
  get hasError(): boolean {
    return ['error', 'message', 'Message'].some((name) => this.#members.has(name))
  }

  /** The value of a member at the top; undefined when it is absent. */
  parse(name: string): unknown {
    const place = this.#members.get(name)
    return place && jsonAt(this.#bytes, place)
  }

  /** The answer or event after its edits. */
  edited(): Json {
    return objectOf(editedJson(this.#bytes, this.edits))
  }

  /** Empties the signatures of an answer's blocks of reasoning with another text than the model wrote. */
  removeSignatures(): void {
    const signed = [...this.#signatures].flatMap(([block, signature]) => {
      const place = this.#blocks.get(block)
      return place ? [{ place, signature }] : []
    })
    this.edits.push(...emptiedSignatures(this.edits, signed))
  }

  /** Empties the signature of an event. */
  removeSignature(): void {
    if (this.signature) this.edits.push({ ...this.signature, replacement: new Uint8Array() })
  }
}

const fieldOf = (path: JsonPath) =>
  isInCall(path)
    ? { path, partial: false, kind: 'tool_arguments' as const, name: lastName(path) }
    : { path, partial: false, kind: 'response' as const }
