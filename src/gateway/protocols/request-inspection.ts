import type { Inspection, TextField } from '../../dlp/inspection.ts'
import type { JsonValuePlace } from '../../dlp/names-and-numbers.ts'
import { checkEdits } from '../../dlp/scan/scan-budget.ts'
import { dataUrlHead, isEncodedText } from '../../dlp/source/encoded-text.ts'
import type { Direction } from '../../dlp/types.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { scanJsonInSlices } from '../../lib/json-scan.ts'
import { type JsonKind, type JsonPath, MAXIMUM_DEPTH } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import type { Protocol, RequestTexts } from './protocol.ts'
import type { RequestOutline } from './request-outline.ts'
import { SourceData } from './source-data.ts'
import { inspectOwnValue, inspectOwnValueInSlices, type TextKind } from './streamed-texts.ts'
import { CHAT_STRUCTURE, MESSAGES_STRUCTURE } from './technical-members.ts'
import {
  isBase64InSlices,
  isUnreadable,
  lastName,
  OWN_DATA,
  PLAIN_NAME,
  requestString,
  unreadablePart,
} from './text-fields.ts'

interface RequestFindings {
  edits: ByteEdit[]
  /** Directions with content that no text engine reads, such as images. */
  uninspectable: ReadonlySet<Direction>
  /** Changed blocks of thinking, as `<message>.<block>`: their signatures no longer fit. */
  changedThinking: ReadonlySet<string>
}

/**
 * Inspects every text of a request, in slices. Removed members are not sent and not inspected. Without a policy the
 * texts are only counted.
 * @param inspectedBefore bytes that were inspected of what is left out of the body.
 */
export function* inspectRequest(
  outline: RequestOutline,
  protocol: Protocol,
  inspection: Inspection,
  inspectedBefore = 0,
): Slices<RequestFindings> {
  inspection.count(inspectedBefore)
  if (inspection.engine.passive) {
    inspection.count(outline.textBytes)
    inspection.endUnit(outline.bytes)
    return NOTHING_FOUND
  }
  const scan = new RequestTextScan(outline, protocol, inspection)
  for (const _pause of scanJsonInSlices(outline.body, scan, () => scan.isDue())) {
    yield* scan.inspectLongTexts()
    yield
  }
  yield* scan.inspectLongTexts()
  scan.removeSignatures()
  inspection.endUnit(outline.bytes)
  return scan
}

const NOTHING_FOUND: RequestFindings = { edits: [], uninspectable: new Set(), changedThinking: new Set() }

/** Shorter numbers identify no person. */
const SHORTEST_NUMBER_BYTES = 9

/** A text and its place in the body. */
interface PlacedText {
  field: TextField
  start: number
  end: number
}

/** Longer texts are inspected in slices. */
const LONGEST_AT_ONCE_BYTES = 16 * 1024
/** Bytes of texts in one slice. Every value counts as some, and every inspected text as more: each is a scan of its own. */
const SLICE_BYTES = 64 * 1024
const VALUE_BYTES = 64
const TEXT_BYTES = 512

/** Whether the last name of a path may be long: it is abbreviated then (`JsonPath`). */
const isLongName = (path: JsonPath): boolean => String(path[path.length - 1]).length > SHORT_NAME_UNITS
const SHORT_NAME_UNITS = 64

class RequestTextScan {
  readonly edits: ByteEdit[] = []
  readonly uninspectable = new Set<Direction>()
  readonly changedThinking = new Set<string>()
  readonly watched: ReadonlySet<string>
  /** Tool input may hold numbers and names at any depth. */
  readonly valueDepth = MAXIMUM_DEPTH
  readonly #outline: RequestOutline
  readonly #body: Uint8Array
  readonly #removed: ReadonlySet<string>
  readonly #inspection: Inspection
  readonly #texts: RequestTexts
  /** Places of the signatures of blocks of thinking. */
  readonly #signatures = new Map<string, { start: number; end: number }>()
  readonly #sources = new SourceData<PlacedText>()
  /** Long texts, which are inspected before the scan continues. */
  readonly #longTexts: PlacedText[] = []
  readonly #longValues: Array<{ place: JsonValuePlace; kind: JsonKind }> = []
  #sliceBytes = 0

  constructor(outline: RequestOutline, { removals, requestTexts }: Protocol, inspection: Inspection) {
    this.#outline = outline
    this.#body = outline.body
    this.#removed = new Set(removals)
    this.#inspection = inspection
    this.#texts = requestTexts
    this.watched = requestTexts.ownData
  }

  /** Whether the scan has to pause. @throws ApiError `dlp_too_complex` for too many edits. */
  isDue(): boolean {
    checkEdits(this.edits.length)
    const isLong = this.#longTexts.length > 0 || this.#longValues.length > 0
    if (!isLong && this.#sliceBytes < SLICE_BYTES) return false
    this.#sliceBytes = 0
    return true
  }

  *inspectLongTexts(): Slices<void> {
    for (let text = this.#longTexts.pop(); text; text = this.#longTexts.pop()) {
      const { field, start, end } = text
      if (field.encoded) yield* this.#inspectEncoded(text)
      else this.#edit(field, yield* this.#inspection.textInSlices(field, this.#body, start, end))
    }
    for (let value = this.#longValues.pop(); value; value = this.#longValues.pop()) {
      const { place, kind } = value
      this.edits.push(...(yield* inspectOwnValueInSlices(this.#inspection, place, kind, this.#body)))
    }
  }

  /**
   * Base64 of a text is inspected as that text. With other characters, which decoders skip, it is inspected as it is as
   * well.
   */
  *#inspectEncoded({ field, start, end }: PlacedText): Slices<void> {
    const contents = this.#body.subarray(start, end)
    const isStrict = yield* isBase64InSlices(contents, dataUrlHead(contents))
    const asText = { ...field, encoded: false }
    if (yield* isEncodedText(contents)) {
      const edit = yield* this.#inspection.textInSlices(field, this.#body, start, end)
      if (edit || isStrict) return this.#edit(field, edit)
      this.#edit(asText, yield* this.#inspection.textInSlices(asText, this.#body, start, end, true))
    } else if (!isStrict) {
      this.#edit(asText, yield* this.#inspection.textInSlices(asText, this.#body, start, end))
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
    this.#sliceBytes += VALUE_BYTES
    // A prompt may be a list of token ids.
    if (path[0] === 'prompt' && kind === 'number') this.uninspectable.add('request')
    if (path[0] !== 'messages' || path[4] !== 'input') {
      if (path[path.length - 1] === 'source') this.#endSource(path)
      this.#inspectFixed({ path, start, end, memberStart, nameEnd }, kind)
      return
    }
    const place = { path, start, end, memberStart, nameEnd }
    if (end - memberStart <= LONGEST_AT_ONCE_BYTES || (kind !== 'number' && !isLongName(path))) {
      this.#sliceBytes += TEXT_BYTES
      this.edits.push(...inspectOwnValue(this.#inspection, place, kind, this.#body))
    } else this.#longValues.push({ place: { ...place, path: [...path] }, kind })
  }

  string(path: JsonPath, start: number, end: number, name: string, own: boolean): void {
    if (this.#removed.has(String(path[0]))) return
    const body = this.#body
    this.#note(path, start, end, name, own)
    const kind = requestString(this.#texts, path, body, start, end, name, own)
    if (kind === 'text') this.#inspect({ field: this.#fieldOf(path, name), start, end })
    else if (kind === 'fixed') {
      this.#inspect({ field: { ...this.#fieldOf(path, name), fixed: true }, start, end })
    } else if (!this.#sources.string(path, body, start, end, () => this.#copied(path, name, start, end))) {
      if (kind === 'encoded') this.#deferEncoded({ field: this.#fieldOf(path, name), start, end })
    }
  }

  #inspect({ field, start, end }: PlacedText): void {
    if (end - start > LONGEST_AT_ONCE_BYTES) {
      this.#longTexts.push({ field: { ...field, path: [...field.path] }, start, end })
      return
    }
    this.#sliceBytes += end - start + TEXT_BYTES
    this.#edit(field, this.#inspection.text(field, this.#body, start, end))
  }

  #edit(field: TextField, edit: ByteEdit | null): void {
    if (!edit || field.fixed) return
    this.edits.push(edit)
    const thinking = this.#texts.thinkingOf(field.path)
    if (thinking !== null) this.changedThinking.add(thinking)
  }

  /** Base64 of binary content is not inspected. */
  #deferEncoded({ field, start, end }: PlacedText): void {
    this.#longTexts.push({
      field: { ...field, path: [...field.path], json: false, encoded: true },
      start,
      end,
    })
  }

  #endSource(path: JsonPath): void {
    for (const { place, isBase64: isEncoded } of this.#sources.end(path)) {
      if (isEncoded) this.#deferEncoded(place)
      else this.#inspect(place)
    }
  }

  #copied(path: JsonPath, name: string, start: number, end: number): PlacedText {
    return { field: { ...this.#fieldOf(path, name), path: [...path] }, start, end }
  }

  /** Names, and numbers that could identify a person: findings in them can block or be recorded, never be changed. */
  #inspectFixed({ path, start, end, memberStart, nameEnd }: JsonValuePlace, kind: JsonKind): void {
    const name = path[path.length - 1]
    const isName = typeof name === 'string' && !PLAIN_NAME.test(name)
    const isNumber = kind === 'number' && end - start >= SHORTEST_NUMBER_BYTES
    if ((!isName && !isNumber) || this.#removed.has(String(path[0]))) return
    const field = {
      path,
      partial: false,
      fixed: true,
      kind: this.#texts.messageTextKind(path, this.#outline).kind,
    }
    if (isName) this.#inspect({ field, start: memberStart + 1, end: nameEnd })
    if (isNumber) this.#inspect({ field: { ...field, name: lastName(path) }, start, end })
  }

  /** Notes unreadable content, and the signatures of thinking. */
  #note(path: JsonPath, start: number, end: number, name: string, own: boolean): void {
    if (
      isUnreadable(path, this.#body, start, end, name, own) ||
      (!own && unreadablePart(path, this.#body, start, end))
    ) {
      this.uninspectable.add(this.#texts.messageTextKind(path, this.#outline).kind)
    }
    const signed = name === 'signature' ? this.#texts.signatureOf?.(path) : null
    if (signed) this.#signatures.set(signed, { start, end })
  }

  /** Empties the signatures of changed thinking: they sign another text. */
  removeSignatures(): void {
    for (const [block, place] of this.#signatures) {
      if (this.changedThinking.has(block)) this.edits.push({ ...place, replacement: null })
    }
  }

  #fieldOf(path: JsonPath, name: string): TextField {
    const kind = this.#texts.messageTextKind(path, this.#outline)
    const isNamed = kind.kind === 'tool_arguments' && !kind.json
    return { path, partial: false, ...kind, ...(isNamed && { name }) }
  }
}

const REQUEST: TextKind = { kind: 'request', json: false }

/** Whether a text of a request is input of a tool, the result of a tool, or the caller's own. */
function kindOf(path: JsonPath, { toolMessages }: RequestOutline): TextKind {
  if (path[0] !== 'messages' || typeof path[1] !== 'number') return REQUEST
  const last = path[path.length - 1]
  if (last === 'arguments') return { kind: 'tool_arguments', json: true }
  if (toolMessages.has(path[1])) return { kind: 'tool_result', json: false }
  if (path[2] === 'tool_calls') return { kind: 'tool_arguments', json: false }
  // Blocks of the messages protocol: tool input, and tool results, which hold content.
  if (path[2] !== 'content') return REQUEST
  if (path[4] === 'input') return { kind: 'tool_arguments', json: false }
  return path[4] === 'content' ? { kind: 'tool_result', json: false } : REQUEST
}

const COMMON: Omit<RequestTexts, 'members'> = {
  ownData: OWN_DATA,
  messageTextKind: kindOf,
  // Their protocol cuts blocks that were changed (`unsignedThinkingEdits`).
  thinkingOf: (path) => (path[0] === 'messages' && path[4] === 'thinking' ? `${path[1]}.${path[3]}` : null),
}

export const CHAT_REQUEST_TEXTS: RequestTexts = { ...COMMON, members: CHAT_STRUCTURE }
export const MESSAGES_REQUEST_TEXTS: RequestTexts = { ...COMMON, members: MESSAGES_STRUCTURE }
