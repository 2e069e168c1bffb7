import type { ByteEdit } from '../../lib/byte-edits.ts'
import { scanJsonInSlices } from '../../lib/json-scan.ts'
import type { JsonKind, JsonPath } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { removalEdits } from './request-edits.ts'

/**
 * Thinking of another family's model reaches callers of the messages protocol without a signature, and they send it
 * back with the conversation. A provider that signs its thinking refuses such a block, so the block is cut out.
 * Thinking with edited text is cut out too, because its signature no longer fits, and so is thinking whose signature the
 * gateway has marked as that of a model of another protocol.
 */

/** Begins the signatures that are sent to callers with a mark of their origin; no vendor's has the full stop. */
export const SIGNATURE_MARK = 'headgate.'

interface Element {
  memberStart: number
  end: number
  unsigned: boolean
}

/** Limit of edits: an edit takes much more memory than the bytes that it removes. */
const MOST_EDITS = 10_000

/** A search for these takes a fraction of a scan's time; only a body that has one is scanned. */
const UNSIGNED = ['""', `"${SIGNATURE_MARK}`].flatMap((value) =>
  ['', ' '].map((space) => Buffer.from(`"signature":${space}${value}`)),
)

/** Bytes that are searched in one slice: about a millisecond. */
const SEARCHED_AT_ONCE = 1024 * 1024
const LONGEST_UNSIGNED = Math.max(...UNSIGNED.map(({ length }) => length))

const NONE: ReadonlySet<string> = new Set()

/**
 * @param body of a messages request, checked. @param changed blocks whose text is edited, as `<message>.<block>`.
 * @returns the edits that cut thinking blocks without a signature, or with another text than theirs, out.
 */
export function* unsignedThinkingEdits(
  body: Uint8Array,
  changed: ReadonlySet<string> = NONE,
): Slices<ByteEdit[]> {
  if (changed.size === 0 && !(yield* hasUnsigned(body))) return []
  const scan = new ContentScan(body, changed)
  yield* scanJsonInSlices(body, scan)
  return scan.edits
}

/** Whether a body has an empty signature somewhere. */
function* hasUnsigned(body: Uint8Array): Slices<boolean> {
  for (let at = 0; at < body.length; at += SEARCHED_AT_ONCE) {
    const end = Math.min(body.length, at + SEARCHED_AT_ONCE + LONGEST_UNSIGNED - 1)
    const part = Buffer.from(body.buffer, body.byteOffset + at, end - at)
    if (UNSIGNED.some((text) => part.includes(text))) return true
    if (end < body.length) yield
  }
  return false
}

class ContentScan {
  readonly valueDepth = 5
  readonly edits: ByteEdit[] = []
  readonly #bytes: Uint8Array
  #elements: Element[] = []
  #isThinking = false
  #isUnsigned = false
  readonly #changed: ReadonlySet<string>

  constructor(bytes: Uint8Array, changed: ReadonlySet<string>) {
    this.#bytes = bytes
    this.#changed = changed
  }

  value(path: JsonPath, kind: JsonKind, start: number, end: number): void {
    if (path[0] !== 'messages' || path[2] !== 'content') return
    if (path.length === 5) this.#member(path[4], kind, start, end)
    else if (path.length === 4) {
      if (this.#changed.has(`${path[1]}.${path[3]}`)) this.#isUnsigned = true
      this.#element(start, end)
    } else if (path.length === 3) this.#content()
  }

  #member(name: JsonPath[number] | undefined, kind: JsonKind, start: number, end: number): void {
    if (kind !== 'string') return
    if (name === 'signature') this.#isUnsigned = end - start === '""'.length || this.#isMarked(start)
    else if (name === 'type') {
      this.#isThinking = Buffer.from(this.#bytes.subarray(start, end)).toString() === '"thinking"'
    }
  }

  /** @param start of the quote before it. */
  #isMarked(start: number): boolean {
    const from = start + 1
    return Buffer.from(this.#bytes.subarray(from, from + SIGNATURE_MARK.length)).toString() === SIGNATURE_MARK
  }

  #element(start: number, end: number): void {
    const unsigned = this.#isThinking && this.#isUnsigned && this.edits.length < MOST_EDITS
    // Adjacent blocks that stay are one element: only the ends of unsigned ones matter.
    const last = this.#elements[this.#elements.length - 1]
    if (last && !unsigned && !last.unsigned) last.end = end
    else if (this.#elements.length < MOST_EDITS) this.#elements.push({ memberStart: start, end, unsigned })
    this.#isThinking = this.#isUnsigned = false
  }

  /** A message of such blocks alone keeps them: empty content would be refused as well. */
  #content(): void {
    const elements = this.#elements
    this.#elements = []
    if (elements.every(({ unsigned }) => unsigned)) return
    this.edits.push(...removalEdits(elements, ({ unsigned }) => unsigned))
  }
}
