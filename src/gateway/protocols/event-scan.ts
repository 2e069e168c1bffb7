import { inspectWhileScanning, WaitingTexts } from '../../dlp/waiting-texts.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { type JsonKind, type JsonPath, MAXIMUM_DEPTH } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { eventDirection, fieldOf } from './event-texts.ts'
import { editedJson, jsonAt } from './frame-json.ts'
import { type ChangingString, changingString } from './frame-template.ts'
import { type AnswerContext, keepsSignatures } from './protocol.ts'
import { SourceData } from './source-data.ts'
import { type FrameString, ownValuePlace } from './streamed-texts.ts'
import { isText, isUnreadable } from './text-fields.ts'

const encoder = new TextEncoder()

/** Scans an answer or an event: passes texts to the inspection, and notes places of members that later steps read. */
export class EventScan {
  /** Numbers in tool input are inspected at any depth. */
  readonly valueDepth: number
  readonly edits: ByteEdit[] = []
  readonly #places = new Map<string, { start: number; end: number }>()
  textBytes = 0
  /** Texts that are inspected after the whole event has been scanned; null for a whole answer, and without a policy. */
  readonly strings: FrameString[] | null
  /** Strings of an event under no policy that its `FrameTemplate` leaves open. */
  readonly changing: ChangingString[] = []
  readonly #partial: boolean
  readonly #bytes: Uint8Array
  /** Texts of a whole answer; names and numbers of tool input. */
  readonly #waiting: WaitingTexts
  readonly #context: AnswerContext
  /** Whether a policy inspects texts. */
  readonly #active: boolean
  /** Only for a whole answer: blocks of thinking by the places of their texts, and the places of signatures by block. */
  readonly #thinking = new Map<number, number>()
  readonly #signatures = new Map<number, { start: number; end: number }>()
  readonly #sources = new SourceData<FrameString>()

  constructor(bytes: Uint8Array, context: AnswerContext, partial: boolean) {
    this.#bytes = bytes
    this.#waiting = new WaitingTexts(context.inspection, bytes)
    this.#context = context
    this.#partial = partial
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
    if (this.#partial && !this.#active) {
      const changing = changingString(path, path[0] === 'delta', start, end)
      if (changing) this.changing.push(changing)
    }
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
    if (signed) this.#thinking.set(start, Number(path[1]))
    if (this.#active) this.#waiting.addText(field, start, end)
    else inspection.count(end - start)
  }

  /** Scans it, and inspects all but `strings`, in slices. @throws JsonSyntaxError, ApiError `dlp_blocked`. */
  *read(): Slices<void> {
    const edits = yield* inspectWhileScanning(this.#bytes, this, this.#waiting)
    for (const edit of edits) this.edits.push(edit)
  }

  /** Cuts signatures of changed thinking out: the provider would refuse them. */
  removeSignatures(): void {
    const changed = new Set(this.edits.map(({ start }) => this.#thinking.get(start)))
    for (const [block, place] of this.#signatures) {
      if (changed.has(block)) this.edits.push({ ...place, replacement: new Uint8Array() })
    }
  }

  /** Whether the event is a delta with the signature of its block. */
  get isSignature(): boolean {
    return this.#places.has(SIGNATURE)
  }

  /** Empties the signature of a delta. */
  removeSignature(): void {
    const place = this.#places.get(SIGNATURE)
    if (place) this.edits.push({ ...place, replacement: encoder.encode('""') })
  }

  value(
    path: JsonPath,
    kind: JsonKind,
    start: number,
    end: number,
    memberStart: number,
    nameEnd: number,
  ): void {
    if (path.length > 2) {
      for (const { place, isBase64 } of this.#sources.end(path)) if (!isBase64) this.#text(place)
      // These members occur in a whole answer, and in the event that begins a block.
      if (path[2] !== 'input' && path[1] !== 'input') return
      const place = { path, start, end, memberStart, nameEnd }
      if (this.#active) this.#waiting.addValue(ownValuePlace(place), kind, 'tool_arguments')
      return
    }
    const place = placeOf(path)
    this.#places.set(place, { start, end })
    if (this.#context.modelId !== null && MODEL_PLACES.has(place)) {
      this.edits.push({ start, end, replacement: encoder.encode(JSON.stringify(this.#context.modelId)) })
    }
  }

  /** The event after its edits. */
  edited(): unknown {
    return editedJson(this.#bytes, this.edits)
  }

  /** The value of a member, by its path of one or two names; undefined when it is absent. */
  parse(...path: string[]): unknown {
    const place = this.#places.get(placeOf(path))
    return place && jsonAt(this.#bytes, place)
  }
}

/** Names may hold any character, so the length of the first one marks where the second begins. */
const placeOf = (path: JsonPath): string =>
  path.length === 1 ? `=${path[0]}` : `${String(path[0]).length}=${path[0]}${path[1]}`
const SIGNATURE = placeOf(['delta', 'signature'])
const MODEL_PLACES = new Set([placeOf(['model']), placeOf(['message', 'model'])])
