import { isText, isUnreadable, OWN_DATA } from '../../gateway/protocols/text-fields.ts'
import type { Inspection, TextField } from '../../governance/dlp/inspection.ts'
import type { CallPolicy } from '../../governance/dlp/policy/call-policy.ts'
import type { Direction } from '../../governance/dlp/types.ts'
import { applyEdits, type ByteEdit, joinBytes } from '../../lib/byte-edits.ts'
import { decodeString, type JsonKind, type JsonPath, MAXIMUM_DEPTH, scanJson } from '../../lib/json-scan.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import { ITEM_TYPES } from '../item-types/item-types.ts'
import { outputTextOf } from '../object/response-members.ts'

/** Members of items that are no text, besides those of all protocols. */
const TECHNICAL = new Set(['call_id', 'status', 'file_id', 'server_label'])
const DATA_URL = /^data:/i
const NOTE = '[Content withheld by a data-loss prevention policy.]'

/**
 * An item as the policy lets it be read by its owner, and as it is kept: findings are masked or redacted, what would
 * block a call is redacted, and content that may not pass uninspected gives way to a note. Texts that stay are neither
 * decoded as a whole nor copied.
 *
 * @param policy null for none. @param bytes of the item as JSON.
 * @returns the same bytes where nothing changes.
 */
export function redactedItem(policy: CallPolicy | null, bytes: Uint8Array): Uint8Array {
  const inspection = policy?.redactionInspection()
  if (!policy || !inspection || inspection.engine.passive) return bytes
  const { edits } = new ReadingScan(bytes, inspection, policy)
  return edits.length === 0 ? bytes : joinBytes(applyEdits(bytes, edits).pieces)
}

/** The same for items that are objects. Items that do not change are the same ones. */
export function redactedItems<Item extends object>(
  policy: CallPolicy | null,
  items: readonly Item[],
): Item[] {
  return items.map((item) => {
    const bytes = encoder.encode(JSON.stringify(item))
    const readable = redactedItem(policy, bytes)
    return readable === bytes ? item : (JSON.parse(decoder.decode(readable)) as Item)
  })
}

/** Members of a response that repeat what its caller said, whatever the words in them are called. */
const SAID_SETTINGS = [
  'instructions',
  'tools',
  'tool_choice',
  'metadata',
  'text',
  'reasoning',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'user',
] as const

/** The same for a response: its output, and what it repeats of its request. */
export function redactedResponse(policy: CallPolicy | null, response: ResponseObject): ResponseObject {
  const output = redactedItems(policy, response.output)
  const said = Object.fromEntries(SAID_SETTINGS.map((name) => [name, response[name]]))
  // In `properties` every string is text: the caller named the members of metadata and of schemas.
  const [settings] = redactedItems(policy, [{ type: 'settings', properties: said }])
  return {
    ...response,
    ...(settings?.properties as Partial<ResponseObject>),
    output,
    output_text: output.some((item, index) => item !== response.output[index])
      ? outputTextOf(output)
      : response.output_text,
  }
}

/** An item without what is sealed in it, for callers who did not ask for that. */
export function withoutSealed<Item extends object>(item: Item): Item {
  const sealed = sealedMemberOf(item)
  if (sealed === undefined || !(sealed in item)) return item
  return Object.fromEntries(Object.entries(item).filter(([name]) => name !== sealed)) as Item
}

/** The member of an item in which something is sealed. */
export const sealedMemberOf = (item: object): string | undefined =>
  'type' in item ? ITEM_TYPES.get(String(item.type))?.sealedMember : undefined

/** A value by its place, with the member of the item that it is in. */
interface Unreadable {
  member: string
  start: number
  end: number
  /** Whether it is a member of the item itself, and not an object within one. */
  isMember: boolean
}

/** What has to be known of an item before its texts are looked at: members stand in any order. */
class ItemFacts {
  readonly valueDepth = MAXIMUM_DEPTH
  readonly watched = OWN_DATA
  type = ''
  role = ''
  /** Content that no engine reads; none within another. */
  readonly unreadable: Unreadable[] = []
  readonly #bytes: Uint8Array
  /** What is open around the place that is read, by its depth: one at a depth, and each within those above it. */
  readonly #holders = new Set<number>()

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    scanJson(bytes, this)
  }

  string(path: JsonPath, start: number, end: number, name: string, own: boolean): void {
    if (path.length === 1 && path[0] === 'type') this.type = decodeString(this.#bytes, start, end)
    else if (path.length === 1 && path[0] === 'role') this.role = decodeString(this.#bytes, start, end)
    else if (isUnreadableHere(path, this.#bytes, start, end, name, own)) {
      const member = String(path[0])
      if (path.length > 1) this.#holders.add(path.length - 1)
      else this.unreadable.push({ member, start: start - 1, end: end + 1, isMember: true })
    }
  }

  value(path: JsonPath, _kind: JsonKind, start: number, end: number): void {
    if (!this.#holders.delete(path.length)) return
    // Places come in order, so what this one holds came last.
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

/** Images of our own making come as base64 in `result`; other results of that name are short words. */
const SHORTEST_ENCODED = 256

const isDataUrl = (name: string, bytes: Uint8Array, start: number, end: number): boolean =>
  name === 'image_url' && DATA_URL.test(decoder.decode(bytes.subarray(start, Math.min(end, start + 5))))

/** Shows every text of an item to the inspection. */
class ReadingScan {
  readonly edits: ByteEdit[]
  readonly watched = OWN_DATA
  readonly valueDepth = -1
  readonly #bytes: Uint8Array
  readonly #inspection: Inspection
  readonly #facts: ItemFacts
  /** What gives way as a whole, in order, and how much of it has been passed. */
  readonly #withheld: readonly Unreadable[]
  #passed = 0

  constructor(bytes: Uint8Array, inspection: Inspection, policy: CallPolicy) {
    this.#bytes = bytes
    this.#inspection = inspection
    this.#facts = new ItemFacts(bytes)
    this.#withheld = this.#facts.unreadable.filter(({ member }) =>
      policy.blocksUninspectable(directionOf(this.#facts, member)),
    )
    this.edits = this.#withheld.map((place) => noteEdit(place, this.#facts))
    scanJson(bytes, this)
  }

  string(path: JsonPath, start: number, end: number, name: string, own: boolean): void {
    if (this.#isWithheld(start)) return
    if (!own && (TECHNICAL.has(name) || isDataUrl(name, this.#bytes, start, end))) return
    if (!isText(path, this.#bytes, start, end, name, own)) return
    const edit = this.#inspection.text(this.#fieldOf(path, name), this.#bytes, start, end)
    if (edit) this.edits.push(edit)
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

/**
 * What a text of an item is: what the caller says, what the model does, what a tool is called with or answers. What is no
 * item, such as settings, is the caller's.
 */
const directionOf = ({ type, role }: ItemFacts, member: string): Direction =>
  ITEM_TYPES.get(type)?.direction(member, role) ?? 'request'

function noteEdit({ start, end, isMember }: Unreadable, { type, role }: ItemFacts): ByteEdit {
  const isSaid = type === 'message' && role === 'assistant'
  const note = { type: isSaid ? 'output_text' : 'input_text', text: NOTE, ...(isSaid && { annotations: [] }) }
  return { start, end, replacement: encoder.encode(isMember ? 'null' : JSON.stringify(note)) }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
