import { isUtf8 } from 'node:buffer'
import type * as z from 'zod'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import { JsonDepthError, type JsonKind, JsonSyntaxError } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { THREAD_DETAILS } from '../../wire/model-requests.ts'
import { OutlineScan } from './outline-scan.ts'
import type { OwnTools } from './own-tools.ts'
import { NO_LIMITS, type ServerTool, type ToolLimits } from './server-tools.ts'
import type { RequestMembers } from './text-fields.ts'

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
  /** Bytes of the request: of the body, with the tools that are left out of it. */
  bytes: number
  /** Tools of this service that are left out of the body, because all of them are known; absent for none. */
  own?: OwnTools
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
  /** Limits that are added to a request whose upstream has the caller's protocol. */
  toolLimits: ToolLimits
  /** Whether the request has audio as input. */
  hasAudio: boolean
  /** Counts of content whose tokens are not bounded by its bytes. */
  images: number
  documents: number
  hasTools: boolean
  /** Tools of the provider's definition that the caller runs: their definitions are not in the body. */
  providedTools: number
  /** Number of bytes of the texts that are sent and inspected. */
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
  /** Shape of the members; others are not read. */
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
 * Reads a request body in one pass, in slices.
 * @throws ApiError invalid_request `invalid_body` for text that is not JSON, a member given twice (two readers could
 * choose differently), and everything the rules refuse.
 */
export function* outlineRequest(body: Uint8Array, rules: OutlineRules): Slices<RequestOutline> {
  const scan = new OutlineScan(body, rules)
  try {
    yield* scan.run()
    checkUtf8(body)
  } catch (error) {
    throw error instanceof JsonSyntaxError ? unreadableBody(error) : error
  }
  if (scan.rootKind !== 'object') throw invalidRequest('The body must be a JSON object.')
  if (scan.duplicate !== null)
    throw invalidRequest(`The member ${scan.duplicate.slice(0, 100)} is given twice.`)
  yield* scan.readObjects()
  const fields = checkFields(scan, rules)
  const streamOptions = fields.stream_options as { include_usage?: unknown } | null | undefined
  const responseFormat = fields.response_format as { type?: unknown } | null | undefined
  return {
    body,
    bytes: body.length,
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
  const [issue] = isValid(scan.fields, rules.schema)
    ? []
    : (rules.schema.safeParse(scan.fields).error?.issues ?? [])
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

/** Members of a schema that a request has to have. */
const requiredMembers = new WeakMap<z.ZodObject, readonly string[]>()

function requiredOf(schema: z.ZodObject): readonly string[] {
  const known = requiredMembers.get(schema)
  if (known) return known
  const required = Object.entries(schema.shape).flatMap(([name, member]) =>
    (member as z.ZodType).safeParse(undefined).success ? [] : [name],
  )
  requiredMembers.set(schema, required)
  return required
}

/** Whether a schema accepts the members: each that is there by itself, since most of a schema's members are not. */
function isValid(fields: Record<string, unknown>, schema: z.ZodObject): boolean {
  for (const name of requiredOf(schema)) if (fields[name] === undefined) return false
  for (const name in fields) {
    const member = schema.shape[name] as z.ZodType | undefined
    if (member && !member.safeParse(fields[name]).success) return false
  }
  return true
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
