import type { Inspection, TextField } from '../../dlp/inspection.ts'
import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import type { Direction } from '../../dlp/types.ts'
import { inspectWhileScanning, WaitingTexts } from '../../dlp/waiting-texts.ts'
import { ITEM_STRUCTURE } from '../../gateway/protocols/technical-members.ts'
import {
  isUnreadable,
  memberOfPart,
  OWN_DATA,
  PLAIN_NAME,
  requestString,
  unreadablePart,
} from '../../gateway/protocols/text-fields.ts'
import { applyEditsInSlices, type ByteEdit, joinBytes } from '../../lib/byte-edits.ts'
import { scanJsonInSlices } from '../../lib/json-scan.ts'
import { decodeString } from '../../lib/json-string.ts'
import { type JsonKind, type JsonPath, MAXIMUM_DEPTH } from '../../lib/json-visitor.ts'
import { runSlices, type Slices } from '../../lib/slices.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import { outputTextOf } from '../model/response-members.ts'
import { isSealed } from './owner-seal.ts'
import { ITEM_TYPES } from './types/item-types.ts'

const DATA_URL = /^data:/i
const NOTE = '[Content withheld by a data-loss prevention policy.]'

/**
 * An item as its owner may read it, and as it is stored: findings are masked or redacted, including those that would block
 * a call. Content that the policy forbids to pass uninspected is replaced by a note. Texts without findings are neither
 * decoded as a whole nor copied.
 * @param policy null for none. @param bytes of the item as JSON.
 * @returns the same bytes if nothing changes.
 */
export const redactedItem = async (policy: CallPolicy | null, bytes: Uint8Array): Promise<Uint8Array> =>
  runSlices(redactItem(policy, bytes))

/** The id of a call in an item that was redacted, since it may be a text in it; null without one. */
export function* callIdIn(bytes: Uint8Array): Slices<string | null> {
  let callId: string | null = null
  yield* scanJsonInSlices(bytes, {
    string(path, start, end) {
      if (path.length === 1 && path[0] === 'call_id') callId = decodeString(bytes, start, end)
    },
  })
  return callId
}

/**
 * `redactedItem` in slices.
 * @internal Tests count its slices.
 */
export function* redactItem(policy: CallPolicy | null, bytes: Uint8Array): Slices<Uint8Array> {
  const inspection = policy?.redactionInspection()
  if (!policy || !inspection || inspection.engine.passive) return bytes
  const facts = new ItemFacts(bytes)
  yield* scanJsonInSlices(bytes, facts)
  const scan = new RedactionScan(bytes, facts, inspection, policy)
  yield* scan.run()
  const { edits } = scan
  return edits.length === 0 ? bytes : joinBytes((yield* applyEditsInSlices(bytes, edits)).pieces)
}

/** Redacts parsed items. Items that do not change are returned as they are. */
export function* redactItems<Item extends object>(
  policy: CallPolicy | null,
  items: readonly Item[],
): Slices<Item[]> {
  const read: Item[] = []
  for (const item of items) {
    const bytes = encoder.encode(JSON.stringify(item))
    const redacted = yield* redactItem(policy, bytes)
    read.push(redacted === bytes ? item : (JSON.parse(decoder.decode(redacted)) as Item))
    if (bytes.length > YIELDING_BYTES) yield
  }
  return read
}

/** Items of more are parsed and rendered in a slice of their own. */
const YIELDING_BYTES = 64 * 1024

/**
 * Members of a response that are not inspected with the others: ids and words that are made here, the model of the
 * catalogue, and the output, whose items are inspected one by one. Numbers of this service are none of a caller.
 */
const OWN_MEMBERS: ReadonlySet<string> = new Set<keyof ResponseObject>([
  'id',
  'object',
  'status',
  'model',
  'conversation',
  'previous_response_id',
  'output',
  'output_text',
  'usage',
])

/** `redactResponse`; other requests have their turn between its slices. */
export const redactedResponse = async (
  policy: CallPolicy | null,
  response: ResponseObject,
): Promise<ResponseObject> => runSlices(redactResponse(policy, response))

/**
 * Redacts a response in slices: its output, and the members that repeat its request.
 * @internal Tests count its slices.
 */
export function* redactResponse(policy: CallPolicy | null, response: ResponseObject): Slices<ResponseObject> {
  const output = yield* redactItems(policy, response.output)
  const repeated = Object.fromEntries(
    Object.entries(response).filter(([name, value]) => !OWN_MEMBERS.has(name) && typeof value !== 'number'),
  ) as Partial<ResponseObject>
  return {
    ...response,
    ...(yield* redactSettings(policy, repeated)),
    output,
    output_text: output.some((item, index) => item !== response.output[index])
      ? outputTextOf(output)
      : response.output_text,
  }
}

/**
 * Redacts the settings of a caller for their owner, in slices. Every string is inspected, including names, since the caller has
 * named the members of metadata and of schemas.
 */
export function* redactSettings<Settings extends object>(
  policy: CallPolicy | null,
  settings: Settings,
): Slices<Settings> {
  const [redacted = { properties: settings }] = yield* redactItems(policy, [
    { type: 'settings', properties: settings },
  ])
  return redacted.properties
}

/** The member of an item with sealed content. */
export const sealedMemberOf = (item: object): string | undefined =>
  'type' in item ? ITEM_TYPES.get(String(item.type))?.sealedMember : undefined

/** The place of content that cannot be inspected. */
interface Unreadable {
  /** The member of the item that contains it. */
  member: string
  start: number
  end: number
  /** Whether the value is that member itself, and not an object in it. */
  isMember: boolean
}

/** Facts about an item that are needed before its texts are inspected. Its members are in any order. */
class ItemFacts {
  readonly valueDepth = MAXIMUM_DEPTH
  readonly watched = OWN_DATA
  type = ''
  role = ''
  /** Content that cannot be inspected. The places do not overlap. */
  readonly unreadable: Unreadable[] = []
  readonly #bytes: Uint8Array
  /** Depths of the objects around the current place that contain such content. */
  readonly #holders = new Set<number>()

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  string(path: JsonPath, start: number, end: number, name: string, own: boolean): void {
    if (path.length === 1 && path[0] === 'type') this.type = decodeString(this.#bytes, start, end)
    else if (path.length === 1 && path[0] === 'role') this.role = decodeString(this.#bytes, start, end)
    else if (isUnreadableHere(path, this.#bytes, start, end, name, own)) {
      const member = String(path[0])
      if (path.length > 1) this.#holders.add(path.length - 1)
      else this.unreadable.push({ member, start: start - 1, end: end + 1, isMember: true })
    } else if (!own && unreadablePart(path, this.#bytes, start, end))
      this.#holders.add(memberOfPart(path) ?? 0)
  }

  value(path: JsonPath, _kind: JsonKind, start: number, end: number): void {
    if (!this.#holders.delete(path.length)) return
    // Places are in order: those inside of this one come last.
    while ((this.unreadable.at(-1)?.start ?? -1) >= start) this.unreadable.pop()
    this.unreadable.push({ member: String(path[0]), start, end, isMember: false })
  }
}

function isUnreadableHere(
  path: JsonPath,
  bytes: Uint8Array,
  start: number,
  end: number,
  name: string,
  own: boolean,
): boolean {
  if (own) return false
  if (path.length === 1) return path[0] === 'result' && end - start >= SHORTEST_ENCODED
  return isDataUrl(name, bytes, start, end) || isUnreadable(path, bytes, start, end, name, own)
}

/** Generated images are base64 in `result`. Other values of that member are short words. */
const SHORTEST_ENCODED = 256

const isDataUrl = (name: string, bytes: Uint8Array, start: number, end: number): boolean =>
  name === 'image_url' && DATA_URL.test(decoder.decode(bytes.subarray(start, Math.min(end, start + 5))))

/** Inspects every text of an item. */
class RedactionScan {
  readonly edits: ByteEdit[]
  readonly watched = OWN_DATA
  readonly valueDepth = MAXIMUM_DEPTH
  readonly #bytes: Uint8Array
  readonly #facts: ItemFacts
  /** Content that is replaced as a whole, in order, and the number of these places before the current one. */
  readonly #withheld: readonly Unreadable[]
  #passed = 0
  readonly #waiting: WaitingTexts

  constructor(bytes: Uint8Array, facts: ItemFacts, inspection: Inspection, policy: CallPolicy) {
    this.#bytes = bytes
    this.#waiting = new WaitingTexts(inspection, bytes)
    this.#facts = facts
    this.#withheld = this.#facts.unreadable.filter(({ member }) =>
      policy.blocksUninspectable(directionOf(this.#facts, member)),
    )
    this.edits = this.#withheld.map((place) => noteEdit(place, this.#facts))
  }

  *run(): Slices<void> {
    for (const edit of yield* inspectWhileScanning(this.#bytes, this, this.#waiting)) this.edits.push(edit)
  }

  string(path: JsonPath, start: number, end: number, name: string, own: boolean): void {
    if (this.#isWithheld(start)) return
    if (!own && (isDataUrl(name, this.#bytes, start, end) || this.#isSealed(path, start, end))) return
    if (requestString(ITEM_TEXTS, path, this.#bytes, start, end, name, own) !== 'text') return
    this.#waiting.addText(this.#fieldOf(path, name), start, end)
  }

  /** Names that may be values, such as those of metadata, and numbers of the caller's own data. */
  value(
    path: JsonPath,
    kind: JsonKind,
    start: number,
    end: number,
    memberStart: number,
    nameEnd: number,
  ): void {
    const name = path[path.length - 1]
    const isName = typeof name === 'string' && !PLAIN_NAME.test(name)
    const isNumber = kind === 'number' && path.some((part) => OWN_DATA.has(String(part)))
    if ((!isName && !isNumber) || this.#isWithheld(memberStart)) return
    const place = { path: isName ? path : [], start, end, memberStart, nameEnd }
    this.#waiting.addValue(place, kind, directionOf(this.#facts, String(path[0])))
  }

  /** Whether a string is sealed content: only the gateway can open it. */
  #isSealed(path: JsonPath, start: number, end: number): boolean {
    return path.length === 1 && path[0] === 'encrypted_content' && isSealed(this.#bytes.subarray(start, end))
  }

  #isWithheld(start: number): boolean {
    while ((this.#withheld[this.#passed]?.end ?? Number.POSITIVE_INFINITY) <= start) this.#passed++
    return (this.#withheld[this.#passed]?.start ?? Number.POSITIVE_INFINITY) <= start
  }

  #fieldOf(path: JsonPath, name: string): TextField {
    const kind = directionOf(this.#facts, String(path[0]))
    const json = path.length === 1 && name === 'arguments'
    return { path, partial: false, kind, json, ...(kind === 'tool_arguments' && !json && { name }) }
  }
}

const ITEM_TEXTS = { ownData: OWN_DATA, members: ITEM_STRUCTURE }

/** The direction of a text. Settings and other values that are no items belong to the request. */
const directionOf = ({ type, role }: ItemFacts, member: string): Direction =>
  ITEM_TYPES.get(type)?.direction(member, role) ?? 'request'

function noteEdit({ start, end, isMember }: Unreadable, { type, role }: ItemFacts): ByteEdit {
  const isOutput = type === 'message' && role === 'assistant'
  const partType = isOutput ? 'output_text' : 'input_text'
  const note = { type: partType, text: NOTE, ...(isOutput && { annotations: [] }) }
  return { start, end, replacement: encoder.encode(isMember ? 'null' : JSON.stringify(note)) }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
