import { scanJson } from '../../lib/json-scan.ts'
import { decodeString } from '../../lib/json-string.ts'
import type { JsonKind } from '../../lib/json-visitor.ts'

/** Kind and place of a value in a body. */
export interface JsonRange {
  kind: JsonKind
  start: number
  end: number
}

/** Members that a count reads. Others are not kept in memory: a body may have any number of them. */
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

/** Calls `visit` for every element of an array in `body`. */
export function eachElement(
  body: Uint8Array,
  { start, end }: JsonRange,
  visit: (element: JsonRange) => void,
): void {
  scanJson(body.subarray(start, end), {
    value(path, kind, from, to) {
      if (typeof path[0] === 'number') visit({ kind, start: start + from, end: start + to })
    },
  })
}

/** The text of a short string member; `''` when there is none, or a long one. */
export function shortText(body: Uint8Array, range: JsonRange | undefined): string {
  if (range?.kind !== 'string' || range.end - range.start > 512) return ''
  return decodeString(body, range.start + 1, range.end - 1)
}
