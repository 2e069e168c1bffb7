import type { ByteEdit } from '../../lib/byte-edits.ts'
import { scanJsonInSlices } from '../../lib/json-scan.ts'
import type { JsonKind, JsonPath } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { removalEdits } from './request-edits.ts'
import { holdsAny, isMarkedAt, SIGNATURE_MARK } from './signature-mark.ts'

/**
 * Tool calls of a model of another protocol reach callers of chat completions with a signature, in `extra_content`. No
 * provider of chat completions can read it, and some refuse the member, so that it is cut out.
 */

interface Member {
  name: string
  memberStart: number
  end: number
}

/** Limit of edits: an edit takes much more memory than the bytes that it removes. */
const MOST_EDITS = 10_000
const MARKED = ['', ' '].map((space) => Buffer.from(`"thought_signature":${space}"${SIGNATURE_MARK}`))
/** `messages`, a message, `tool_calls`, a call. */
const CALL_DEPTH = 4
/** `extra_content`, `google`, `thought_signature` of a call. */
const SIGNATURE_DEPTH = 7

/** @param body of a chat completion request, checked. @returns the edits that cut marked signatures out. */
export function* markedCallEdits(body: Uint8Array): Slices<ByteEdit[]> {
  if (!(yield* holdsAny(body, MARKED))) return []
  const scan = new CallScan(body)
  yield* scanJsonInSlices(body, scan)
  return scan.edits
}

class CallScan {
  readonly valueDepth = CALL_DEPTH + 1
  readonly edits: ByteEdit[] = []
  readonly #body: Uint8Array
  #members: Member[] = []
  #isMarked = false

  constructor(body: Uint8Array) {
    this.#body = body
  }

  string(path: JsonPath, start: number): void {
    if (path.length !== SIGNATURE_DEPTH || !isOfCall(path) || path[4] !== 'extra_content') return
    if (path[6] === 'thought_signature' && isMarkedAt(this.#body, start)) this.#isMarked = true
  }

  value(path: JsonPath, _kind: JsonKind, _start: number, end: number, memberStart: number): void {
    if (!isOfCall(path)) return
    if (path.length > CALL_DEPTH) this.#members.push({ name: String(path[4]), memberStart, end })
    else if (path.length === CALL_DEPTH) this.#endCall()
  }

  #endCall(): void {
    const members = this.#members
    const isMarked = this.#isMarked && this.edits.length < MOST_EDITS
    this.#members = []
    this.#isMarked = false
    if (isMarked) this.edits.push(...removalEdits(members, ({ name }) => name === 'extra_content'))
  }
}

const isOfCall = (path: JsonPath): boolean => path[0] === 'messages' && path[2] === 'tool_calls'
