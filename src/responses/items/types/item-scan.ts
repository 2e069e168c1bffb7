import { invalidRequest } from '../../../lib/api-error.ts'
import { scanJsonInSlices } from '../../../lib/json-scan.ts'
import { decodeString } from '../../../lib/json-string.ts'
import type { JsonKind, JsonPath } from '../../../lib/json-visitor.ts'
import type { Slices } from '../../../lib/slices.ts'

/** The place of a value in an item. */
export interface JsonPlace {
  kind: JsonKind
  start: number
  end: number
}

/** The place of a member in an item; `memberStart` is the place of its name. */
export interface ItemMember extends JsonPlace {
  memberStart: number
}

/** An element of `content`, `output` or `summary`, with the members that are checked. */
export interface ItemPart extends JsonPlace {
  members: ReadonlyMap<string, JsonPlace>
}

/** Members whose elements are read. */
const LISTS: ReadonlySet<unknown> = new Set(['content', 'output', 'summary'])
/** Members of parts that are checked. The places of others are not stored, since a body may have any number of them. */
const CHECKED_MEMBERS = new Set([
  'type',
  'text',
  'refusal',
  'annotations',
  'image_url',
  'file_id',
  'file_data',
  'file_url',
  'input_audio',
])
const MOST_MEMBERS = 100
const MOST_PARTS = 10_000
const SHORT_BYTES = 4 * 1024
const OPEN_BRACE = 0x7b

/** The places of an item's members and parts in the bytes that were sent. It is not parsed into a tree. */
export class ItemScan {
  readonly valueDepth = 3
  readonly source: Uint8Array
  /** Name of the item in error messages, such as `input[3]`. */
  readonly where: string
  readonly members = new Map<string, ItemMember>()
  readonly #parts = new Map<string, ItemPart[]>()
  #partMembers = new Map<string, JsonPlace>()
  readonly #partNames = new Set<string>()

  /**
   * Reads an item in slices.
   * @param source one JSON value, without space around it.
   * @throws ApiError invalid_request for a value that is no object, has a duplicate member (two parsers could choose
   * differently), or too many members or parts. JsonSyntaxError for invalid JSON.
   */
  static *read(source: Uint8Array, where: string): Slices<ItemScan> {
    const scan = new ItemScan(source, where)
    if (source[0] !== OPEN_BRACE) throw invalidRequest(`${where}: must be an object.`)
    yield* scanJsonInSlices(source, scan)
    return scan
  }

  private constructor(source: Uint8Array, where: string) {
    this.source = source
    this.where = where
  }

  /** Called by the scanner. */
  value(path: JsonPath, kind: JsonKind, start: number, end: number, memberStart: number): void {
    const [name, index, member] = path
    if (path.length === 1) this.#member(String(name), { kind, start, end, memberStart })
    if (!LISTS.has(name) || typeof index !== 'number') return
    if (path.length === 3) this.#partMember(path, String(member), { kind, start, end })
    else if (path.length === 2) this.#part(String(name), { kind, start, end })
  }

  /** The elements of a list member. */
  parts(name: string): readonly ItemPart[] {
    return this.#parts.get(name) ?? []
  }

  kindOf(name: string): JsonKind | null {
    return this.members.get(name)?.kind ?? null
  }

  /** The decoded text of a short string; null for any other value. */
  textOf(place: JsonPlace | undefined): string | null {
    if (place?.kind !== 'string' || place.end - place.start > SHORT_BYTES) return null
    return decodeString(this.source, place.start + 1, place.end - 1)
  }

  /** @throws ApiError invalid_request about a member of this item. */
  fail(member: string, problem: string): never {
    throw invalidRequest(`${this.where}.${member}: ${problem}.`)
  }

  #member(name: string, member: ItemMember): void {
    if (this.members.has(name)) this.fail(name.slice(0, 100), 'is given twice')
    if (this.members.size >= MOST_MEMBERS) {
      throw invalidRequest(`${this.where}: may have at most ${MOST_MEMBERS} members.`)
    }
    this.members.set(name, member)
  }

  #partMember(path: JsonPath, name: string, place: JsonPlace): void {
    const at = `${path[0]}[${path[1]}]`
    if (this.#partNames.has(name)) this.fail(`${at}.${name.slice(0, 100)}`, 'is given twice')
    if (this.#partNames.size >= MOST_MEMBERS) this.fail(at, `may have at most ${MOST_MEMBERS} members`)
    this.#partNames.add(name)
    if (CHECKED_MEMBERS.has(name)) this.#partMembers.set(name, place)
  }

  #part(list: string, place: JsonPlace): void {
    const parts = this.#parts.get(list) ?? []
    if (parts.length >= MOST_PARTS) this.fail(list, `may have at most ${MOST_PARTS} parts`)
    parts.push({ ...place, members: this.#partMembers })
    this.#parts.set(list, parts)
    this.#partMembers = new Map()
    this.#partNames.clear()
  }
}
