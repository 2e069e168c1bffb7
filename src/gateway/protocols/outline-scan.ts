import { invalidRequest } from '../../lib/api-error.ts'
import { scanJsonInSlices } from '../../lib/json-scan.ts'
import { decodeString } from '../../lib/json-string.ts'
import type { JsonKind, JsonPath, JsonVisitor } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import type { MessagesCheck, OutlineRules, RequestOutline, TopMember } from './request-outline.ts'
import { ToolScan } from './server-tools.ts'
import { FILE_TYPES, IMAGE_TYPES, LONGEST_TYPE_BYTES, requestString } from './text-fields.ts'

/**
 * Members whose values are not parsed. Others are parsed if they are scalars or short arrays; of objects only the
 * members of `READ_INSIDE` are: a tree takes many times the bytes of its text.
 */
const UNPARSED = new Set(['tools', 'input'])
const READ_INSIDE = new Set(['type', 'include_usage', 'budget_tokens', 'max_tokens', 'effort', 'enabled'])
const LARGEST_PARSED_BYTES = 64 * 1024
/** Stands for a string above that size: longer than any that the rules limit, such as `model`. */
const LONG_STRING = ' '.repeat(1024)
/** Names are kept in memory to detect duplicates. */
const MOST_MEMBERS = 1000
const EMPTY_OF_KIND: Record<JsonKind, unknown> = {
  object: {},
  array: [],
  string: '',
  number: 0,
  boolean: false,
  null: null,
}
const DOCUMENT_TYPES = ['document', 'document_url', 'audio_url', ...FILE_TYPES]
const AUDIO_TYPES = new Set(['input_audio', 'audio_url'])
/** Items that are results of tools. */
const OUTPUT_TYPES = new Set(['function_call_output', 'custom_tool_call_output'])
/** Members that refer to files, containers and stores at the provider, anywhere but in the caller's own data. */
const STATE_MEMBERS = new Set(['container', 'container_id', 'file_id', 'file_ids', 'vector_store_ids'])
/** Members by which a provider adds to the context before it reads it. */
const CONTEXT_MEMBERS = new Set(['search_parameters', 'container'])
const decoder = new TextDecoder()
/** A name that folding does not change. */
const PLAIN_NAME = /^[a-z0-9_]*$/

/** Earlier audio of a chat completion is stored at the provider, under an id. */
const isState = (path: JsonPath, name: string): boolean =>
  STATE_MEMBERS.has(name) ||
  (name === 'id' && path.length === 4 && path[0] === 'messages' && path[2] === 'audio')

/** The value of a member, or a stand-in of its kind where the rules read only the kind. */
function fieldOf(name: string, kind: JsonKind, bytes: Uint8Array): unknown {
  if (kind === 'string' && bytes.length > LARGEST_PARSED_BYTES) return LONG_STRING
  if (kind === 'object' || UNPARSED.has(name) || bytes.length > LARGEST_PARSED_BYTES) {
    return EMPTY_OF_KIND[kind]
  }
  return JSON.parse(decoder.decode(bytes))
}

/** @throws ApiError invalid_request for a duplicate or another spelling: parsers differ in which one they take. */
function* membersRead(parent: string, bytes: Uint8Array): Slices<Record<string, unknown>> {
  const places = new Map<string, [JsonKind, number, number]>()
  const visitor: JsonVisitor = {
    value(path, kind, start, end) {
      if (path.length !== 1) return
      const name = String(path[0])
      const folded = PLAIN_NAME.test(name) ? name : name.normalize('NFKC').toLowerCase()
      if (!READ_INSIDE.has(folded)) return
      if (places.has(folded)) throw invalidRequest(`The member ${parent}.${folded} is given twice.`)
      if (name !== folded)
        throw invalidRequest(`The member ${parent}.${folded} must be written in lower case.`)
      places.set(name, [kind, start, end])
    },
  }
  yield* scanJsonInSlices(bytes, visitor)
  return Object.fromEntries(
    [...places].map(([name, [kind, start, end]]) => [name, fieldOf(name, kind, bytes.subarray(start, end))]),
  )
}

/** Collects what the gateway reads of a request, in one pass over its body. */
export class OutlineScan {
  readonly valueDepth = 3
  readonly watched: ReadonlySet<string>
  readonly members: TopMember[] = []
  readonly fields: Record<string, unknown> = Object.create(null)
  readonly check: MessagesCheck | null
  rootKind: JsonKind | null = null
  duplicate: string | null = null
  messageCount = 0
  images = 0
  documents = 0
  hasAudio = false
  textBytes = 0
  toolModel: string | null = null
  providerState: RequestOutline['providerState'] = null
  readonly tools: ToolScan
  readonly toolMessages = new Set<number>()
  /** Elements of `prompt` that are prompts by themselves: texts, or arrays of token ids. */
  prompts = 0
  readonly #body: Uint8Array
  readonly #names = new Set<string>()
  readonly #rules: OutlineRules

  constructor(body: Uint8Array, rules: OutlineRules) {
    this.#body = body
    this.tools = new ToolScan(body)
    this.#rules = rules
    this.check = rules.messages?.() ?? null
    this.watched = rules.texts.ownData
  }

  /** @throws JsonSyntaxError, and ApiError invalid_request for what the rules refuse. */
  run(): Slices<void> {
    return scanJsonInSlices(this.#body, this)
  }

  /** Reads the members inside of the objects that the rules name. @throws ApiError invalid_request */
  *readObjects(): Slices<void> {
    for (const { name, kind, start, end } of this.members) {
      if (kind !== 'object' || !Object.hasOwn(this.#rules.schema.shape, name)) continue
      this.fields[name] = yield* membersRead(name, this.#body.subarray(start, end))
    }
  }

  string(path: JsonPath, start: number, end: number, name: string, own: boolean): void {
    const { texts, removals } = this.#rules
    if (!removals.includes(String(path[0]))) {
      if (!own && isState(path, name)) this.#noteState(path)
      const kind = requestString(texts, path, this.#body, start, end, name, own)
      if (kind === 'text' || kind === 'fixed') this.textBytes += end - start
    }
    if (path[path.length - 1] === 'type' && end - start <= LONGEST_TYPE_BYTES) this.#type(path, start, end)
  }

  #noteState(path: JsonPath): void {
    const member = path.findLast((part) => typeof part === 'string' && part !== 'id') ?? ''
    this.providerState ??= { member: String(member), place: path.join('.') }
  }

  #type(path: JsonPath, start: number, end: number): void {
    const type = decodeString(this.#body, start, end)
    // Turns of responses send no tool that runs at the provider.
    if (path[0] === 'tools' && path.length === 3) {
      this.tools.type(path[1], type, !this.#rules.hasItems)
    } else if (IMAGE_TYPES.includes(type)) this.images++
    else if (DOCUMENT_TYPES.includes(type)) this.documents++
    this.hasAudio ||= AUDIO_TYPES.has(type)
  }

  value(path: JsonPath, kind: JsonKind, start: number, end: number, memberStart: number): void {
    if (path.length === 0) this.rootKind = kind
    else if (path.length === 1) this.#member(String(path[0]), kind, start, end, memberStart)
    else if (path[0] === 'tools') this.#tool(path, kind, start, end)
    else if (path[0] === 'messages' && this.check && typeof path[1] === 'number') {
      if (path.length === 2) {
        this.messageCount++
        this.check.message(path[1], kind)
      } else {
        const text = this.#shortText(kind, start, end)
        if (path[2] === 'role' && text === 'tool') this.toolMessages.add(path[1])
        this.check.member(path[1], String(path[2]), kind, text)
      }
    } else if (this.#rules.hasItems && path[0] === 'input' && typeof path[1] === 'number') {
      if (path[2] === 'type') this.#itemType(path[1], this.#shortText(kind, start, end))
    } else if (
      path[0] === this.#rules.required &&
      path.length === 2 &&
      (kind === 'string' || kind === 'array')
    ) {
      this.prompts++
    }
  }

  #tool(path: JsonPath, kind: JsonKind, start: number, end: number): void {
    if (path.length === 2) this.tools.end(path[1], start)
    else if (path[2] === 'model' && kind !== 'null') this.toolModel ??= path.join('.')
    else this.tools.member(path[1], path[2], kind, { start, end })
  }

  /** When `type` is given several times, the last one counts, as in the parser of the item. */
  #itemType(index: number, type: string | null): void {
    if (type !== null && OUTPUT_TYPES.has(type)) this.toolMessages.add(index)
    else this.toolMessages.delete(index)
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  #member(name: string, kind: JsonKind, start: number, end: number, memberStart: number): void {
    if (this.#names.has(name)) this.duplicate ??= name
    if (this.members.length >= MOST_MEMBERS) throw invalidRequest('The body has too many members.')
    this.#names.add(name)
    this.#checkSpelling(name)
    if (CONTEXT_MEMBERS.has(name)) this.documents++
    if (name === 'container' && kind === 'object') this.#noteState(['container'])
    this.members.push({ name, kind, memberStart, start, end })
    if (kind === 'object' || !Object.hasOwn(this.#rules.schema.shape, name)) return
    this.fields[name] = fieldOf(name, kind, this.#body.subarray(start, end))
  }

  /** Some upstreams ignore the case of names: `Model` after `model` would select another model there. */
  #checkSpelling(name: string): void {
    if (PLAIN_NAME.test(name)) return
    const folded = name.normalize('NFKC').toLowerCase()
    if (folded === name) return
    const { schema, removals } = this.#rules
    if (folded === 'messages' || removals.includes(folded) || Object.hasOwn(schema.shape, folded)) {
      throw invalidRequest(`The member ${folded} must be written in lower case.`)
    }
  }

  #shortText(kind: JsonKind, start: number, end: number): string | null {
    return kind === 'string' && end - start < 512 ? decodeString(this.#body, start + 1, end - 1) : null
  }
}
