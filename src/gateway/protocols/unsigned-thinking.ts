import type { ByteEdit } from '../../lib/byte-edits.ts'
import { scanJsonInSlices } from '../../lib/json-scan.ts'
import type { JsonKind, JsonPath } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { removalEdits } from './request-edits.ts'
import { holdsAny, isMarkedAt, SIGNATURE_MARK } from './signature-mark.ts'

/**
 * Thinking of another family's model reaches callers of the messages protocol without a signature, and they send it
 * back with the conversation. A provider that signs its thinking refuses such a block, so the block is cut out.
 * Thinking with edited text is cut out too, because its signature no longer fits, and so is thinking whose signature the
 * gateway has marked as that of a model of another protocol.
 */

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

const NONE: ReadonlySet<string> = new Set()

/**
 * @param body of a messages request, checked. @param changed blocks whose text is edited, as `<message>.<block>`.
 * @returns the edits that cut thinking blocks without a signature, or with another text than theirs, out.
 */
export function* unsignedThinkingEdits(
  body: Uint8Array,
  changed: ReadonlySet<string> = NONE,
): Slices<ByteEdit[]> {
  if (changed.size === 0 && !(yield* holdsAny(body, UNSIGNED))) return []
  const scan = new ContentScan(body, changed)
  yield* scanJsonInSlices(body, scan)
  return scan.edits
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
    if (name === 'signature')
      this.#isUnsigned = end - start === '""'.length || isMarkedAt(this.#bytes, start + 1)
    else if (name === 'type') {
      this.#isThinking = Buffer.from(this.#bytes.subarray(start, end)).toString() === '"thinking"'
    }
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
