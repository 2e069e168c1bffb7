import { checkUtf8, unreadableBody } from '../../gateway/protocols/request-outline.ts'
import { invalidRequest } from '../../lib/api-error.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
import { type ByteRoom, OwnedBytes, ownedCopy } from '../../lib/bytes/owned-bytes.ts'
import { BrokenStreamError, PartReader } from '../../lib/bytes/read-bytes.ts'
import { scanJsonInSlices } from '../../lib/json-scan.ts'
import { hasTooManyValues, MOST_JSON_VALUES } from '../../lib/json-values.ts'
import { type JsonKind, type JsonPath, JsonSyntaxError } from '../../lib/json-visitor.ts'
import { issueReason } from '../../lib/schema-issues.ts'
import { runSlices, type Slices } from '../../lib/slices.ts'
import { isAgentModel } from '../../wire/agent-model.ts'
import { MAXIMUM_BODY_BYTES } from '../../wire/body-limit.ts'
import { type ResponseSettings, responseSettings } from '../../wire/responses.ts'
import { type InputItem, readItem, userMessage } from '../items/input-items.ts'
import type { JsonPlace } from '../items/types/item-scan.ts'
import type { RequestContent } from '../model/types.ts'
import { withOwnTools } from '../open-responses/own-tools.ts'
import { textOfInput } from './agent-request.ts'
import { checkMessageType, generatesOf, settingsOfMessage } from './create-message.ts'

/** The body of `POST /v1/responses`. */
export interface ResponseRequest {
  /** All members but `input`; unknown ones are kept. */
  settings: ResponseSettings
  items: InputItem[]
  /** False: the model is not called (`generate` of a message). */
  generates?: boolean
  /** Text of the input of a request for a run of an agent, which has no items. */
  agentText?: string
}

/** Rules for a body. */
interface BodyForm {
  /** Whether a request that continues a conversation needs a member `input`; true by default. */
  needsInput?: boolean
  /** Whether the body is a message of a WebSocket. */
  isMessage?: boolean
  /** Whether the model may be an agent; if not, an agent's id is an unknown model. */
  takesAgents?: boolean
}

/** Settings are parsed into a tree, which takes many times the bytes of its text. */
const LARGEST_SETTINGS = 8 * 1024 * 1024
const MOST_MEMBERS = 1000
/** Maximum number of items: more than any model's context holds. */
const MOST_ITEMS = 20_000

interface Member extends JsonPlace {
  name: string
  memberStart: number
}

/**
 * Reads the body of a request.
 * @param form of the body; that of `POST /v1/responses` by default.
 * @returns `reserved` has no bytes any more, but still counts the size of the body in the memory budget: the items are
 *   copies of it. The caller releases it.
 * @throws ApiError invalid_request, and rate_limited when this isolate buffers too many bytes already.
 */
export async function loadRequest(
  { configuration }: { configuration: { BUFFER_LIMIT_BYTES: number } },
  content: RequestContent,
  organizationId: string,
  form: BodyForm = {},
): Promise<{ request: ResponseRequest; reserved: OwnedBytes }> {
  const room = { limitBytes: configuration.BUFFER_LIMIT_BYTES, holder: organizationId, isArriving: true }
  const body = content instanceof Uint8Array ? ownedCopy([content]) : await collected(content, room)
  try {
    const request = await runSlices(readResponseRequest(body.bytes, form))
    body.free()
    return { request, reserved: body }
  } catch (error) {
    body.release()
    throw error
  }
}

/** @throws ApiError invalid_request for a body that broke off, rate_limited. */
async function collected(stream: ReadableStream<Uint8Array>, room: ByteRoom): Promise<OwnedBytes> {
  const body = new OwnedBytes(MAXIMUM_BODY_BYTES, room)
  const reader = new PartReader(stream)
  try {
    await reader.each((part) => body.append(part))
    body.arrived()
    return body
  } catch (error) {
    body.release()
    reader.cancel(error)
    // The Worker has the cause (too large, no gzip, or the caller left) and answers with it.
    throw error instanceof BrokenStreamError ? invalidRequest('The body broke off.') : error
  }
}

/**
 * Parses a request in slices, and checks all that needs no lookup. `input` is not parsed into a tree: its texts are copied once, as
 * the bytes that were sent.
 * @param body up to 50 MB. May be freed afterwards. @param form see `loadRequest`.
 * @throws ApiError invalid_request `invalid_body` that names the member.
 * @internal Tests read requests without an object.
 */
export function* readResponseRequest(
  body: Uint8Array,
  { needsInput = true, isMessage = false, takesAgents = false }: BodyForm = {},
): Slices<ResponseRequest> {
  const scan = yield* scanned(body)
  if (scan.rootKind !== 'object') throw invalidRequest('The body must be a JSON object.')
  if (scan.duplicate !== null) {
    throw invalidRequest(`The member ${scan.duplicate.slice(0, 100)} is given twice.`)
  }
  if (isMessage) checkMessageType(body, scan.members)
  const sent = yield* settingsOf(body, scan.members)
  const settings = isMessage ? settingsOfMessage(sent) : sent
  const generates = !isMessage || generatesOf(sent)
  const input = scan.members.find(({ name }) => name === 'input')
  if (takesAgents && isAgentModel(settings.model)) {
    return { settings, items: [], agentText: textOfInput(body, input, scan.elements) }
  }
  if (input?.kind === 'string') {
    return { settings, generates, items: [userMessage(body.subarray(input.start + 1, input.end - 1))] }
  }
  const continues = Boolean(settings.conversation ?? settings.previous_response_id)
  if (!needsInput && continues && (input?.kind ?? 'null') === 'null') return { settings, items: [] }
  if (input?.kind !== 'array') {
    throw invalidRequest('input: is required and must be a string or an array of items.')
  }
  if (scan.elements.length === 0 && !continues) {
    throw invalidRequest('input: may only be empty where a conversation or a previous response is continued.')
  }
  const items: InputItem[] = []
  for (const [index, { start, end }] of scan.elements.entries()) {
    items.push(yield* readItem(body.subarray(start, end), `input[${index}]`))
    if (index % ITEMS_AT_ONCE === ITEMS_AT_ONCE - 1) yield
  }
  return { settings, generates, items }
}

/** Items that are read in one slice. */
const ITEMS_AT_ONCE = 256

function* scanned(body: Uint8Array): Slices<RequestReader> {
  const scan = new RequestReader()
  try {
    yield* scanJsonInSlices(body, scan)
    checkUtf8(body)
  } catch (error) {
    throw error instanceof JsonSyntaxError ? unreadableBody(error) : error
  }
  return scan
}

/** The places of the body's members, and of the elements of `input`. */
class RequestReader {
  readonly valueDepth = 2
  readonly members: Member[] = []
  readonly elements: JsonPlace[] = []
  rootKind: JsonKind | null = null
  duplicate: string | null = null
  readonly #names = new Set<string>()

  value(path: JsonPath, kind: JsonKind, start: number, end: number, memberStart: number): void {
    if (path.length === 0) this.rootKind = kind
    else if (path.length === 1) this.#member({ name: String(path[0]), kind, start, end, memberStart })
    else if (path[0] === 'input' && typeof path[1] === 'number') {
      if (this.elements.length >= MOST_ITEMS) {
        throw invalidRequest(`input: may have at most ${MOST_ITEMS} items.`)
      }
      this.elements.push({ kind, start, end })
    }
  }

  #member(member: Member): void {
    if (this.#names.has(member.name)) this.duplicate ??= member.name
    if (this.members.length >= MOST_MEMBERS) throw invalidRequest('The body has too many members.')
    this.#names.add(member.name)
    this.members.push(member)
  }
}

function* settingsOf(body: Uint8Array, members: readonly Member[]): Slices<ResponseSettings> {
  const sent = yield* settingsTree(body, members)
  const parsed = responseSettings.safeParse(sent)
  if (parsed.success) return withOwnTools(parsed.data)
  const issue = parsed.error.issues[0]
  const reason = issue ? issueReason(issue, sent) : 'is not valid'
  throw invalidRequest(`${memberPath(issue?.path ?? [])}: ${reason}.`)
}

function* settingsTree(body: Uint8Array, members: readonly Member[]): Slices<unknown> {
  const pieces: Uint8Array[] = []
  for (const { name, memberStart, end } of members) {
    if (name !== 'input') pieces.push(pieces.length === 0 ? OPEN : COMMA, body.subarray(memberStart, end))
  }
  if (pieces.length === 0) return {}
  const length = pieces.reduce((total, piece) => total + piece.length, 0)
  if (length > LARGEST_SETTINGS) {
    throw invalidRequest(`The members other than input may have at most ${LARGEST_SETTINGS} bytes.`)
  }
  const settings = joinBytes([...pieces, CLOSE])
  if (yield* hasTooManyValues(settings)) {
    throw invalidRequest(`The members other than input may hold at most ${MOST_JSON_VALUES} values.`)
  }
  return JSON.parse(decoder.decode(settings))
}

/** Formats a path of a member, such as `tools[0].type`. */
function memberPath(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')
  return text.slice(text.startsWith('.') ? 1 : 0, 200)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
const OPEN = encoder.encode('{')
const COMMA = encoder.encode(',')
const CLOSE = encoder.encode('}')
