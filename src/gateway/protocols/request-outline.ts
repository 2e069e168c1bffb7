import { isUtf8 } from 'node:buffer'
import type { z } from 'zod'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import {
  decodeString,
  JsonDepthError,
  type JsonKind,
  type JsonPath,
  JsonSyntaxError,
  scanJson,
} from '../../lib/json-scan.ts'
import { THREAD_DETAILS } from '../../wire/model-requests.ts'
import { NO_LIMITS, type ServerTool, type ToolLimits, ToolScan } from './server-tools.ts'
import {
  FILE_TYPES,
  IMAGE_TYPES,
  LONGEST_TYPE_BYTES,
  type RequestMembers,
  requestString,
} from './text-fields.ts'

/** A top-level member of a request, by its place in the body. */
export interface TopMember {
  name: string
  kind: JsonKind
  /** Offset of the opening quote of its name. */
  memberStart: number
  start: number
  end: number
}

/** The members of a request body that the gateway reads, without a tree of it. */
export interface RequestOutline {
  body: Uint8Array
  members: TopMember[]
  model: string
  stream: boolean
  /** Whether the caller requested usage on its stream. */
  usageRequested: boolean
  /** The most tokens it may generate for one choice; null leaves it to the model's maximum. */
  maximumOutput: number | null
  choices: number
  /** Whether the protocol counts thinking below its budget within `maximumOutput`. */
  budgetIsWithinLimit: boolean
  /** Members of the request's schema: scalars and short arrays; of objects only the members of `READ_INSIDE`. */
  fields: Readonly<Record<string, unknown>>
  /** Tools that run at the provider, with the limits that the gateway adds. */
  serverTools: readonly ServerTool[]
  /** What is added to a request whose upstream has the caller's protocol. */
  toolLimits: ToolLimits
  /** Whether it has audio as input. */
  hasAudio: boolean
  /** Counts of content whose tokens are not bounded by its bytes. */
  images: number
  documents: number
  hasTools: boolean
  /** Tools of the provider's definition that the caller runs: their definitions are not in the body. */
  providedTools: number
  /** Of the texts that are sent and inspected. */
  textBytes: number
  /** Indexes of the messages, or items, that are results of tools. */
  toolMessages: ReadonlySet<number>
  /** Place of a tool that selects a model by itself; null for none. */
  toolModel: string | null
  /** The first reference to state at the provider: its member and its place; null for none. */
  providerState: { member: string; place: string } | null
  /** Whether the request is for JSON without a schema (interface: JSON mode). */
  jsonObject: boolean
}

/** Checks the elements of `messages` during the scan, in constant memory. Keeps the first problem. */
export interface MessagesCheck {
  /** A member of a message has ended: `text` is its value when it is a short string. */
  member(index: number, name: string, kind: JsonKind, text: string | null): void
  /** A message has ended. */
  message(index: number, kind: JsonKind): void
  problem: string | null
}

export interface OutlineRules {
  /** Only members of its shape are read. */
  schema: z.ZodObject
  /** Null for requests without `messages`. */
  messages: (() => MessagesCheck) | null
  /** Members that are not sent on. */
  removals: readonly string[]
  texts: RequestMembers
  /** A required member that is not `messages`. */
  required?: string
  /** Whether `input`, a list of items, is required in place of `messages`. */
  hasItems?: boolean
  maximumOutput(fields: Record<string, unknown>): number | null
  budgetIsWithinLimit?: boolean
  /** Whether tools that run at the provider take `max_uses`. */
  limitsToolUses?: boolean
  /** Choices for one prompt. */
  choices(fields: Record<string, unknown>): number
}

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

/**
 * Reads a request body in one pass.
 * @throws ApiError invalid_request `invalid_body` for text that is not JSON, a member given twice (two readers could
 * choose differently), and everything the rules refuse.
 */
export function outlineRequest(body: Uint8Array, rules: OutlineRules): RequestOutline {
  const scan = new OutlineScan(body, rules)
  try {
    scanJson(body, scan)
    checkUtf8(body)
  } catch (error) {
    throw error instanceof JsonSyntaxError ? unreadableBody(error) : error
  }
  if (scan.rootKind !== 'object') throw invalidRequest('The body must be a JSON object.')
  if (scan.duplicate !== null)
    throw invalidRequest(`The member ${scan.duplicate.slice(0, 100)} is given twice.`)
  const fields = checkFields(scan, rules)
  const streamOptions = fields.stream_options as { include_usage?: unknown } | null | undefined
  const responseFormat = fields.response_format as { type?: unknown } | null | undefined
  return {
    body,
    members: scan.members,
    model: fields.model as string,
    stream: fields.stream === true,
    usageRequested: streamOptions?.include_usage === true,
    maximumOutput: rules.maximumOutput(fields),
    choices: rules.choices(fields) * Math.max(1, scan.prompts),
    budgetIsWithinLimit: rules.budgetIsWithinLimit ?? false,
    fields,
    serverTools: scan.tools.tools(rules.limitsToolUses ?? false),
    toolLimits: rules.limitsToolUses ? scan.tools.limits() : NO_LIMITS,
    hasAudio: scan.hasAudio,
    images: scan.images,
    documents: scan.documents,
    hasTools: scan.has('tools'),
    providedTools: scan.tools.provided,
    textBytes: scan.textBytes,
    toolMessages: scan.toolMessages,
    toolModel: scan.toolModel,
    providerState: scan.providerState,
    jsonObject: responseFormat?.type === 'json_object',
  }
}

function checkFields(scan: OutlineScan, rules: OutlineRules): Record<string, unknown> {
  const [issue] = rules.schema.safeParse(scan.fields).error?.issues ?? []
  if (issue) {
    const path = issue.path.join('.')
    const text = issue.message.startsWith(path) ? `${issue.message}.` : `${path}: ${issue.message}.`
    const details = path === 'thread' ? { details: THREAD_DETAILS } : {}
    throw new ApiError('invalid_request', text, { code: 'invalid_body', ...details })
  }
  if (rules.messages) {
    const messages = scan.members.find((member) => member.name === 'messages')
    if (messages?.kind !== 'array') throw invalidRequest('messages is required and must be an array.')
    if (scan.messageCount === 0) throw invalidRequest('messages: at least one message is required.')
    if (scan.check?.problem) throw invalidRequest(scan.check.problem)
  }
  if (rules.required && !scan.has(rules.required)) throw invalidRequest(`${rules.required} is required.`)
  const input = scan.members.find((member) => member.name === 'input')
  if (rules.hasItems && input?.kind !== 'array')
    throw invalidRequest('input is required and must be an array.')
  return scan.fields
}

/** The error for a body that the scanner refuses. Nesting is a limit of the gateway, not a fault of the JSON. */
export function unreadableBody(error: JsonSyntaxError): ApiError {
  if (error instanceof JsonDepthError) return invalidRequest(`The body is ${error.message}.`)
  return invalidRequest(`The body is not valid JSON: ${error.message}.`)
}

/** RFC 8259 section 8.1: JSON between systems is UTF-8. Broken sequences could read differently here and upstream. */
export function checkUtf8(body: Uint8Array): void {
  if (!isUtf8(body)) throw invalidRequest('The body is not valid UTF-8.')
}

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
function membersRead(parent: string, bytes: Uint8Array): Record<string, unknown> {
  const places = new Map<string, [JsonKind, number, number]>()
  scanJson(bytes, {
    value(path, kind, start, end) {
      if (path.length !== 1) return
      const name = String(path[0])
      const folded = name.normalize('NFKC').toLowerCase()
      if (!READ_INSIDE.has(folded)) return
      if (places.has(folded)) throw invalidRequest(`The member ${parent}.${folded} is given twice.`)
      if (name !== folded)
        throw invalidRequest(`The member ${parent}.${folded} must be written in lower case.`)
      places.set(name, [kind, start, end])
    },
  })
  return Object.fromEntries(
    [...places].map(([name, [kind, start, end]]) => [name, fieldOf(name, kind, bytes.subarray(start, end))]),
  )
}

class OutlineScan {
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

  /** Of several types the last one counts, as in the parser of the item. */
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
    if (!Object.hasOwn(this.#rules.schema.shape, name)) return
    const bytes = this.#body.subarray(start, end)
    this.fields[name] = kind === 'object' ? membersRead(name, bytes) : fieldOf(name, kind, bytes)
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
