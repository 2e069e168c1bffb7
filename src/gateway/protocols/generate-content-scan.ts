import { inspectWhileScanning, WaitingTexts } from '../../dlp/waiting-texts.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { type JsonKind, type JsonPath, MAXIMUM_DEPTH } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { emptiedSignatures, type Place } from './edited-signatures.ts'
import { editedJson, jsonAt } from './frame-json.ts'
import { isMalformed } from './generate-content-endings.ts'
import { type Json, objectOf } from './json.ts'
import type { AnswerContext } from './protocol.ts'
import { lastName } from './text-fields.ts'

/** A part of a candidate's content. */
export interface ScannedPart {
  kind: 'text' | 'thought' | 'call' | 'other'
  /** Contents of its text; null for none. */
  text: Place | null
  /** Contents of its signature; null for none. */
  signature: Place | null
  /** The whole part. */
  place: Place
}

export interface ScannedCandidate {
  index: number
  parts: ScannedPart[]
  /** Null while it goes on. */
  finishReason: string | null
}

/** Strings with these names are the vendor's words and ids. All others are texts, under any name. */
const TECHNICAL: ReadonlySet<string> = new Set([
  'blockReason',
  'category',
  'finishReason',
  'id',
  'mimeType',
  'modality',
  'modelVersion',
  'probability',
  'responseId',
  'role',
  'thoughtSignature',
])
/** Index of a part in a path, as in `candidates.0.content.parts.1`. */
const PART = 4
/** Index of the arguments in the path of a call. */
const ARGUMENTS = 6
/** `thought` of a part. */
const DEEPEST_MEMBER = 6

const isInPart = (path: JsonPath): boolean =>
  path[0] === 'candidates' && path[2] === 'content' && path[3] === 'parts' && path.length > PART
const isInArguments = (path: JsonPath): boolean =>
  isInPart(path) && path[5] === 'functionCall' && path[ARGUMENTS] === 'args'
const isOfCall = (path: JsonPath): boolean => isInPart(path) && path[5] === 'functionCall'
/** Base64 of an image or audio, or an address of one. */
const isMedia = (path: JsonPath): boolean =>
  isInPart(path) && (path[5] === 'inlineData' || path[5] === 'fileData') && path.length === 7

/** Scans an answer or a chunk of generateContent: finds parts, endings and usage, and passes texts to the inspection. */
export class GenerateContentScan {
  /** Names and numbers in arguments are inspected at any depth. */
  readonly valueDepth: number
  readonly edits: ByteEdit[] = []
  readonly candidates: ScannedCandidate[] = []
  error: Place | null = null
  hasCandidates = false
  /** Whether the prompt was blocked. */
  isBlocked = false
  textBytes = 0
  #usage: Place | null = null
  readonly #bytes: Uint8Array
  readonly #waiting: WaitingTexts
  readonly #context: AnswerContext
  /** Whether texts of parts are pieces, which the reader of the stream inspects. */
  readonly #partial: boolean
  readonly #active: boolean

  constructor(bytes: Uint8Array, context: AnswerContext, partial: boolean) {
    this.#bytes = bytes
    this.#waiting = new WaitingTexts(context.inspection, bytes)
    this.#context = context
    this.#active = !context.inspection.engine.passive
    this.#partial = partial && this.#active
    this.valueDepth = this.#active ? MAXIMUM_DEPTH : DEEPEST_MEMBER
  }

  /** Scans it, and inspects all but the pieces of a stream, in slices. @throws JsonSyntaxError, ApiError `dlp_blocked`. */
  *read(): Slices<void> {
    for (const edit of yield* inspectWhileScanning(this.#bytes, this, this.#waiting)) this.edits.push(edit)
  }

  string(path: JsonPath, start: number, end: number): void {
    const isArgument = isInArguments(path)
    if (isMedia(path) && lastName(path) !== 'mimeType') {
      if (this.#active) this.#context.inspection.uninspectable('response')
      return
    }
    if (path.length === PART + 2 && isInPart(path)) this.#partString(path, start, end)
    if (!isArgument && TECHNICAL.has(lastName(path))) return
    if (isInPart(path)) this.textBytes += end - start
    if (!this.#active) this.#context.inspection.count(end - start)
    else if (!this.#partial || !isPartText(path)) this.#waiting.addText(fieldOf(path), start, end)
  }

  #partString(path: JsonPath, start: number, end: number): void {
    const part = this.#partAt(path)
    if (path[5] === 'thoughtSignature') part.signature = { start, end }
    else if (path[5] === 'text') {
      part.text = { start, end }
      if (part.kind === 'other') part.kind = 'text'
    }
  }

  value(
    path: JsonPath,
    kind: JsonKind,
    start: number,
    end: number,
    memberStart: number,
    nameEnd: number,
  ): void {
    if (path.length === 1) this.#member(String(path[0]), kind, start, end)
    else if (path[0] === 'promptFeedback' && path[1] === 'blockReason') this.isBlocked = kind === 'string'
    else if (path[0] === 'candidates' && path.length === 3) this.#candidateMember(path, kind, start, end)
    else if (path[0] === 'candidates' && path.length === 2) this.#candidate(Number(path[1]))
    else if (isInArguments(path)) {
      if (this.#active)
        this.#waiting.addValue(argumentPlace(path, start, end, memberStart, nameEnd), kind, 'tool_arguments')
    } else if (isInPart(path)) this.#ofPart(path, start, end)
  }

  #member(name: string, kind: JsonKind, start: number, end: number): void {
    if (name === 'usageMetadata') this.#usage = { start, end }
    else if (name === 'error' && kind !== 'null') this.error = { start, end }
    else if (name === 'candidates') this.hasCandidates = true
  }

  #candidateMember(path: JsonPath, kind: JsonKind, start: number, end: number): void {
    const candidate = this.#candidate(Number(path[1]))
    if (path[2] === 'index' && kind === 'number')
      candidate.index = Number(jsonAt(this.#bytes, { start, end }))
    if (path[2] !== 'finishReason' || kind !== 'string') return
    candidate.finishReason = String(jsonAt(this.#bytes, { start, end }))
  }

  #ofPart(path: JsonPath, start: number, end: number): void {
    const part = this.#partAt(path)
    if (path.length === PART + 1) part.place = { start, end }
    else if (path[5] === 'thought' && path.length === PART + 2) {
      if (jsonAt(this.#bytes, { start, end }) === true) part.kind = 'thought'
    } else if (isOfCall(path)) part.kind = 'call'
  }

  #candidate(position: number): ScannedCandidate {
    const candidate = this.candidates[position] ?? { index: position, parts: [], finishReason: null }
    this.candidates[position] = candidate
    return candidate
  }

  #partAt(path: JsonPath): ScannedPart {
    const { parts } = this.#candidate(Number(path[1]))
    const position = Number(path[PART])
    const part = parts[position] ?? {
      kind: 'other',
      text: null,
      signature: null,
      place: { start: 0, end: 0 },
    }
    parts[position] = part
    return part
  }

  usageValue(): unknown {
    return this.#usage && jsonAt(this.#bytes, this.#usage)
  }

  get isMalformed(): boolean {
    return this.candidates.some(({ finishReason }) => isMalformed(finishReason))
  }

  /** The answer or chunk after its edits. */
  edited(): Json {
    return objectOf(editedJson(this.#bytes, this.edits))
  }

  /** Empties the signatures of parts with another text or other arguments than the model wrote. */
  removeSignatures(): void {
    const signed = this.candidates.flatMap(({ parts }) =>
      parts.flatMap(({ place, signature }) => (signature ? [{ place, signature }] : [])),
    )
    this.edits.push(...emptiedSignatures(this.edits, signed))
  }
}

const isPartText = (path: JsonPath): boolean =>
  isInPart(path) && path.length === PART + 2 && path[PART + 1] === 'text'

const fieldOf = (path: JsonPath) =>
  isOfCall(path)
    ? { path, partial: false, kind: 'tool_arguments' as const, name: lastName(path) }
    : { path, partial: false, kind: 'response' as const }

/** The place without a name where it is that of the arguments themselves, which is the protocol's. */
const argumentPlace = (path: JsonPath, start: number, end: number, memberStart: number, nameEnd: number) => ({
  path: path.length === ARGUMENTS + 1 ? [] : path,
  start,
  end,
  memberStart,
  nameEnd,
})
