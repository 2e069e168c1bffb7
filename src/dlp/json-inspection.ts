import { applyEditsInSlices, type EditedBytes, joinBytes } from '../lib/byte-edits.ts'
import { type JsonPath, JsonSyntaxError, type JsonVisitor, MAXIMUM_DEPTH } from '../lib/json-visitor.ts'
import type { Slices } from '../lib/slices.ts'
import type { Inspection } from './inspection.ts'
import type { Direction } from './types.ts'
import { inspectWhileScanning, WaitingTexts } from './waiting-texts.ts'

/**
 * Inspects JSON of an unknown schema in slices: the arguments of a tool, or its result. Every text is inspected, with the
 * names of members and numbers.
 * @param source one JSON value.
 * @param isOpaque whether the string at a place is not text, such as the data of an image: it is not inspected.
 * @returns the value with its replacements; a number that is replaced becomes a string.
 * @throws ApiError `dlp_blocked` for a finding that blocks the call, JsonSyntaxError for text that is not JSON.
 */
export function* inspectJson(
  inspection: Inspection,
  source: Uint8Array,
  direction: Direction,
  isOpaque: (path: JsonPath) => boolean = () => false,
): Slices<EditedBytes> {
  inspection.begin()
  const waiting = new WaitingTexts(inspection, source)
  const visitor: JsonVisitor = {
    valueDepth: MAXIMUM_DEPTH,
    string(path, start, end, name) {
      if (isOpaque(path)) return
      waiting.addText({ path, partial: false, kind: direction, name }, start, end)
    },
    value(path, kind, start, end, memberStart, nameEnd) {
      waiting.addValue({ path, start, end, memberStart, nameEnd }, kind, direction)
    },
  }
  const edits = yield* inspectWhileScanning(source, visitor, waiting)
  inspection.endUnit(source.length)
  const edited = yield* applyEditsInSlices(source, edits)
  inspection.sink(edited.released, edited.withheld)
  return edited
}

/**
 * Inspects a body that may be JSON, such as the error of an upstream, in the direction of answers, in slices.
 * @returns the same bytes if nothing changes. @throws ApiError `dlp_blocked` for a finding that blocks the call.
 */
export function* inspectBody(inspection: Inspection, body: Uint8Array): Slices<Uint8Array> {
  if (inspection.engine.passive || body.length === 0) return body
  try {
    return joinBytes((yield* inspectJson(inspection, body, 'response')).pieces)
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
  }
  const source = encoder.encode(JSON.stringify(decoder.decode(body)))
  const { pieces, withheld } = yield* inspectJson(inspection, source, 'response')
  if (withheld === 0) return body
  return encoder.encode(JSON.parse(decoder.decode(joinBytes(pieces))) as string)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
