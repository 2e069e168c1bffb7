import { decodeString, type JsonKind, scanJson } from '../../lib/json-scan.ts'

/** A value by its place in a body. */
export interface JsonRange {
  kind: JsonKind
  start: number
  end: number
}

/** Members that a count looks at. Others are not kept: a body may have any number of them. */
const NAMES = [
  'content',
  'context',
  'data',
  'input',
  'name',
  'source',
  'text',
  'title',
  'tool_name',
  'type',
] as const
const KNOWN: ReadonlySet<string> = new Set(NAMES)

export type JsonMembers = ReadonlyMap<(typeof NAMES)[number], JsonRange>

/** The members of the object that lies in `body` from `start` to `end`. Of equal names the last counts. */
export function membersOf(body: Uint8Array, { start, end }: JsonRange): JsonMembers {
  const members = new Map<(typeof NAMES)[number], JsonRange>()
  scanJson(body.subarray(start, end), {
    value(path, kind, from, to) {
      const [name] = path
      if (path.length !== 1 || !isKnown(name)) return
      members.set(name, { kind, start: start + from, end: start + to })
    },
  })
  return members
}

const isKnown = (name: unknown): name is (typeof NAMES)[number] => KNOWN.has(name as string)

/** Tells every element of the array that lies in `body`. */
export function eachElement(
  body: Uint8Array,
  { start, end }: JsonRange,
  tell: (element: JsonRange, index: number) => void,
): void {
  scanJson(body.subarray(start, end), {
    value(path, kind, from, to) {
      const [index] = path
      if (typeof index === 'number') tell({ kind, start: start + from, end: start + to }, index)
    },
  })
}

/** The text of a short string member; `''` when there is none, or a long one. */
export function shortText(body: Uint8Array, range: JsonRange | undefined): string {
  if (range?.kind !== 'string' || range.end - range.start > 512) return ''
  return decodeString(body, range.start + 1, range.end - 1)
}
