import { applyEdits, type ByteEdit, type EditedBytes, joinBytes } from '../../lib/byte-edits.ts'
import { scanJson } from '../../lib/json-scan.ts'
import { type JsonKind, type JsonPath, JsonSyntaxError, MAXIMUM_DEPTH } from '../../lib/json-visitor.ts'
import { drained, type Slices } from '../../lib/slices.ts'
import type { Inspection } from './inspection.ts'
import type { Direction } from './types.ts'

/**
 * Inspects JSON of an unknown schema: the arguments of a tool, or its result. Every text is inspected, with the names of
 * members and numbers.
 * @param source one JSON value.
 * @param isOpaque whether the string at a place is not text, such as the data of an image: it is not inspected.
 * @returns the value with its replacements; a number that is replaced becomes a string.
 * @throws ApiError `dlp_blocked` for a finding that blocks the call, JsonSyntaxError for text that is not JSON.
 */
export function inspectJson(
  inspection: Inspection,
  source: Uint8Array,
  direction: Direction,
  isOpaque: (path: JsonPath) => boolean = () => false,
): EditedBytes {
  inspection.begin()
  const edits: ByteEdit[] = []
  scanJson(source, {
    valueDepth: MAXIMUM_DEPTH,
    string(path, start, end, name) {
      if (isOpaque(path)) return
      const edit = inspection.text({ path, partial: false, kind: direction, name }, source, start, end)
      if (edit) edits.push(edit)
    },
    value(path, kind, start, end, memberStart, nameEnd) {
      const place = { path, start, end, memberStart, nameEnd }
      edits.push(...inspectNameAndNumber(inspection, place, kind, source, direction))
    },
  })
  inspection.endUnit(source.length)
  const edited = applyEdits(source, edits)
  inspection.sink(edited.released, edited.withheld)
  return edited
}

/**
 * Inspects a body that may be JSON, such as the error of an upstream, in the direction of answers.
 * @returns the same bytes if nothing changes. @throws ApiError `dlp_blocked` for a finding that blocks the call.
 */
export function inspectBody(inspection: Inspection, body: Uint8Array): Uint8Array {
  if (inspection.engine.passive || body.length === 0) return body
  try {
    return joinBytes(inspectJson(inspection, body, 'response').pieces)
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
  }
  const source = encoder.encode(JSON.stringify(decoder.decode(body)))
  const { pieces, withheld } = inspectJson(inspection, source, 'response')
  if (withheld === 0) return body
  return encoder.encode(JSON.parse(decoder.decode(joinBytes(pieces))) as string)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** The place of a value and of its member. */
export interface JsonValuePlace {
  path: JsonPath
  start: number
  end: number
  memberStart: number
  /** The closing quote of the member's name. */
  nameEnd: number
}

/**
 * Inspects the name of a member, and a number, which is replaced by a string.
 * @returns the edits.
 */
export function inspectNameAndNumber(
  inspection: Inspection,
  place: JsonValuePlace,
  kind: JsonKind,
  source: Uint8Array,
  direction: Direction,
): ByteEdit[] {
  return drained(nameAndNumberInSlices(inspection, place, kind, source, direction))
}

/** As `inspectNameAndNumber`, in slices. */
export function* nameAndNumberInSlices(
  inspection: Inspection,
  { path, start, end, memberStart, nameEnd }: JsonValuePlace,
  kind: JsonKind,
  source: Uint8Array,
  direction: Direction,
): Slices<ByteEdit[]> {
  const edits: ByteEdit[] = []
  const field = { path, partial: false, kind: direction }
  const name = path[path.length - 1]
  if (typeof name === 'string') {
    const edit = yield* inspection.textInSlices(field, source, memberStart + 1, nameEnd)
    if (edit) edits.push(edit)
  }
  if (kind !== 'number') return edits
  const memberName = path.findLast((part) => typeof part === 'string') ?? ''
  const edit = yield* inspection.textInSlices({ ...field, name: memberName }, source, start, end)
  if (!edit) return edits
  const { replacement } = edit
  edits.push(replacement ? { ...edit, replacement: joinBytes([QUOTE, replacement, QUOTE]) } : edit)
  return edits
}

const QUOTE = encoder.encode('"')
