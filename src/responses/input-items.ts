import { applyEdits, type ByteEdit } from '../lib/byte-edits.ts'
import { GrowingBuffer } from '../lib/growing-buffer.ts'
import { isIdText, newItemId } from './ids.ts'
import { type ItemMember, type ItemPart, ItemScan } from './item-scan.ts'
import type { ContextItem } from './types.ts'

/** An item of a request: a new one, or the id of one that is stored. */
export type NewItem = GivenItem | { reference: string }

/** An item that is given whole. */
export interface GivenItem extends ContextItem {
  /** Id of the stored item that it says again with less than that has: where its owner has that one, it counts. */
  repeats?: string
}

/** What reading an item of a type comes to. */
interface ItemForm {
  type: string
  role?: string
  callId?: string
  edits?: ByteEdit[]
  /** Members that are not taken over. */
  dropped?: ReadonlySet<string>
  /** Members that are added, as JSON without the comma before them. */
  added?: string[]
  repeats?: string
}

const ROLES = ['user', 'assistant', 'system', 'developer']
const STATUSES = ['in_progress', 'completed', 'incomplete']
/** Texts of any side are taken in a message of any role: histories are put together from several sources. */
const TEXT_PARTS = new Set(['text', 'input_text', 'output_text'])
const MEDIA_PARTS = new Set(['input_image', 'input_file', 'input_audio'])
/** What providers told us apart from the item, and what only we may say. */
const INTERNAL_MEMBERS = new Set(['signature', 'redacted', 'origin'])
/** Longer than the ids of any provider, of which some carry state in them. */
const LONGEST_ID = 4 * 1024

/**
 * Types of the official interface and of ours whose items are kept as they are given: histories of other gateways and
 * of hosted tools hold them (`ResponseInputItem` of https://github.com/openai/openai-node).
 */
const KEPT_TYPES = new Set([
  'additional_tools',
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  'compaction',
  'compaction_trigger',
  'computer_call',
  'computer_call_output',
  'configuration_update',
  'file_search_call',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'program',
  'program_output',
  'service_call',
  'shell_call',
  'shell_call_output',
  'tool_search_call',
  'tool_search_output',
  'web_search_call',
])

const READERS: ReadonlyMap<string, (item: ItemScan) => ItemForm> = new Map([
  ['message', readMessage],
  ['function_call', (item) => readCall(item, 'function_call', 'arguments')],
  ['custom_tool_call', (item) => readCall(item, 'custom_tool_call', 'input')],
  ['function_call_output', (item) => readOutput(item, 'function_call_output')],
  ['custom_tool_call_output', (item) => readOutput(item, 'custom_tool_call_output')],
  ['reasoning', readReasoning],
])

/**
 * Reads an element of `input`: checks what its type needs, and gives it an id of ours in place of any it has. `type`
 * may be left out of a message and of a reference. Texts are not decoded.
 *
 * @param source one JSON value. @param where names it in messages.
 * @returns with bytes of its own.
 * @throws ApiError invalid_request `invalid_body` that names the member.
 */
export function readItem(source: Uint8Array, where: string): NewItem {
  const item = new ItemScan(source, where)
  const type = typeOf(item)
  if (type === 'item_reference') return { reference: idOf(item, 'id') }
  const read = READERS.get(type)
  if (read) return composed(item, withStatus(item, read(item)))
  if (!KEPT_TYPES.has(type)) item.fail('type', `${JSON.stringify(type.slice(0, 100))} is no type of item`)
  const callId = item.members.has('call_id') ? { callId: idOf(item, 'call_id') } : {}
  return composed(item, { type, ...callId })
}

/** A message of the user. @param contents of a JSON string, escapes untouched. */
export function userMessage(contents: Uint8Array): ContextItem {
  const id = newItemId('message')
  const start = `{"id":"${id}","type":"message","role":"user","content":[{"type":"input_text","text":"`
  const pieces = [encoder.encode(start), contents, encoder.encode('"}],"status":"completed"}')]
  return { id, type: 'message', role: 'user', callId: null, bytes: freeableBytes(pieces) }
}

function typeOf(item: ItemScan): string {
  const type = item.members.get('type')
  if (type && type.kind !== 'null') return item.textOf(type) ?? item.fail('type', 'must be a short string')
  const isBare = [...item.members.keys()].every((name) => name === 'id' || name === 'type')
  return isBare && item.members.has('id') ? 'item_reference' : 'message'
}

function readMessage(item: ItemScan): ItemForm {
  const role = item.textOf(item.members.get('role'))
  if (role === null || !ROLES.includes(role)) item.fail('role', `must be one of ${ROLES.join(', ')}`)
  const textType = role === 'assistant' ? 'output_text' : 'input_text'
  const content = item.members.get('content')
  if (content?.kind === 'string') return { type: 'message', role, edits: asTextPart(content, textType) }
  if (content?.kind !== 'array') item.fail('content', 'must be a string or an array of parts')
  const edits = item.parts('content').flatMap((part, index) => {
    const at = `content[${index}]`
    const type = partType(item, part, at)
    if (TEXT_PARTS.has(type)) return textPartEdits(item, part, at, textType)
    if (type === 'refusal' && role === 'assistant') needString(item, part, at, 'refusal')
    else if (MEDIA_PARTS.has(type) && role !== 'assistant') checkMedia(item, part, at, type)
    else item.fail(`${at}.type`, `${quoted(type)} is no part of a message with the role ${role}`)
    return []
  })
  return { type: 'message', role, edits }
}

function readCall(item: ItemScan, type: string, input: 'arguments' | 'input'): ItemForm {
  if (item.kindOf(input) !== 'string') item.fail(input, 'must be a string')
  idOf(item, 'name')
  const namespace = item.kindOf('namespace')
  if (namespace !== null && namespace !== 'null') idOf(item, 'namespace')
  return { type, callId: idOf(item, 'call_id') }
}

function readOutput(item: ItemScan, type: string): ItemForm {
  const callId = idOf(item, 'call_id')
  const output = item.kindOf('output')
  if (output === 'string') return { type, callId }
  if (output !== 'array') item.fail('output', 'must be a string or an array of parts')
  const edits = item.parts('output').flatMap((part, index) => {
    const at = `output[${index}]`
    const partKind = partType(item, part, at)
    if (TEXT_PARTS.has(partKind)) return textPartEdits(item, part, at, 'input_text')
    if (!MEDIA_PARTS.has(partKind)) item.fail(`${at}.type`, `${quoted(partKind)} is no part of an output`)
    checkMedia(item, part, at, partKind)
    return []
  })
  return { type, callId, edits }
}

function readReasoning(item: ItemScan): ItemForm {
  const dropped = new Set(INTERNAL_MEMBERS)
  const added: string[] = []
  for (const [name, types] of REASONING_TEXTS) {
    const kind = item.kindOf(name)
    if (kind !== null && kind !== 'null' && kind !== 'array') item.fail(name, 'must be an array of parts')
    for (const [index, part] of item.parts(name).entries()) {
      const at = `${name}[${index}]`
      const type = partType(item, part, at)
      if (!types.includes(type)) item.fail(`${at}.type`, `${quoted(type)} is no part of it`)
      needString(item, part, at, 'text')
    }
    if (kind === 'null') dropped.add(name)
  }
  if (item.kindOf('summary') !== 'array') added.push('"summary":[]')
  const sealed = item.kindOf('encrypted_content')
  if (sealed !== null && sealed !== 'null' && sealed !== 'string') {
    item.fail('encrypted_content', 'must be a string')
  }
  const form: ItemForm = { type: 'reasoning', dropped, added }
  const id = item.textOf(item.members.get('id'))
  return sealed !== 'string' && id !== null && REASONING_ID.test(id) ? { ...form, repeats: id } : form
}

/**
 * Clients send back all items of a response whose reasoning they never saw sealed (@openai/agents and LangChain, unless
 * told otherwise): the provider of the official API knows it by its id.
 */
const REASONING_ID = /^rs_[0-9A-Za-z]{22}$/

const REASONING_TEXTS: ReadonlyArray<[member: string, types: readonly string[]]> = [
  ['summary', ['summary_text']],
  ['content', ['reasoning_text', 'text']],
]

/** An id or a name: a string with something in it. In the item it stays as it is spelled. */
function idOf(item: ItemScan, name: string): string {
  const text = item.textOf(item.members.get(name))
  if (!text || text.length > LONGEST_ID) item.fail(name, 'must be a non-empty string')
  if (!isIdText(text)) item.fail(name, 'must be well-formed text on one line')
  return text
}

function partType(item: ItemScan, part: ItemPart, at: string): string {
  if (part.kind !== 'object') item.fail(at, 'must be an object')
  return item.textOf(part.members.get('type')) ?? item.fail(`${at}.type`, 'must be a string')
}

function needString(item: ItemScan, part: ItemPart, at: string, name: string): void {
  if (part.members.get(name)?.kind !== 'string') item.fail(`${at}.${name}`, 'must be a string')
}

const MEDIA_SOURCES: Readonly<Record<string, readonly string[]>> = {
  input_image: ['image_url', 'file_id'],
  input_file: ['file_data', 'file_url', 'file_id'],
}

/** A member that is null counts as none: official clients write all of them. */
function checkMedia(item: ItemScan, part: ItemPart, at: string, type: string): void {
  if (type === 'input_audio') {
    if (part.members.get('input_audio')?.kind !== 'object')
      item.fail(`${at}.input_audio`, 'must be an object')
    return
  }
  const names = MEDIA_SOURCES[type] ?? []
  const given = names.filter((name) => (part.members.get(name)?.kind ?? 'null') !== 'null')
  if (given.length === 0) item.fail(at, `needs ${names.join(' or ')}`)
  for (const name of given) needString(item, part, at, name)
}

function textPartEdits(item: ItemScan, part: ItemPart, at: string, textType: TextType): ByteEdit[] {
  needString(item, part, at, 'text')
  const type = part.members.get('type')
  const edits: ByteEdit[] = []
  if (type && item.textOf(type) !== textType) {
    edits.push({ start: type.start, end: type.end, replacement: TEXT_TYPES[textType] })
  }
  if (textType === 'output_text' && part.members.get('annotations')?.kind !== 'array') {
    const annotations = part.members.get('annotations')
    edits.push(
      annotations
        ? { start: annotations.start, end: annotations.end, replacement: encoder.encode('[]') }
        : { start: part.end - 1, end: part.end - 1, replacement: encoder.encode(',"annotations":[]') },
    )
  }
  return edits
}

/** A content that is a string becomes a part, around the bytes that it is. */
function asTextPart({ start, end }: ItemMember, textType: TextType): ByteEdit[] {
  const after = textType === 'output_text' ? ',"annotations":[]}]' : '}]'
  return [
    { start, end: start, replacement: encoder.encode(`[{"type":"${textType}","text":`) },
    { start: end, end, replacement: encoder.encode(after) },
  ]
}

function withStatus(item: ItemScan, form: ItemForm): ItemForm {
  const status = item.members.get('status')
  if (status && status.kind !== 'null') {
    const text = item.textOf(status)
    if (text === null || !STATUSES.includes(text))
      item.fail('status', `must be one of ${STATUSES.join(', ')}`)
    return form
  }
  const dropped = new Set([...(form.dropped ?? []), 'status'])
  return { ...form, dropped, added: [...(form.added ?? []), '"status":"completed"'] }
}

/** Puts an item together: an id of ours, its type, and the members that it has, as the bytes that they are. */
function composed(
  item: ItemScan,
  { type, role, callId, edits = [], dropped, added = [], repeats }: ItemForm,
): GivenItem {
  const id = newItemId(type)
  const pieces: Uint8Array[] = [encoder.encode(`{"id":"${id}","type":"${type}"`)]
  for (const [name, { memberStart, start, end }] of item.members) {
    if (name === 'id' || name === 'type' || dropped?.has(name)) continue
    pieces.push(COMMA, item.source.subarray(memberStart, start))
    const inside = edits.filter((edit) => edit.start >= start && edit.end <= end)
    const shifted = inside.map((edit) => ({ ...edit, start: edit.start - start, end: edit.end - start }))
    pieces.push(...applyEdits(item.source.subarray(start, end), shifted).pieces)
  }
  pieces.push(encoder.encode(`${added.map((member) => `,${member}`).join('')}}`))
  const given = { id, type, role: role ?? null, callId: callId ?? null, bytes: freeableBytes(pieces) }
  return repeats === undefined ? given : { ...given, repeats }
}

/** One array, of which a large one can be freed when it is moved. */
function freeableBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new GrowingBuffer(pieces.reduce((length, piece) => length + piece.length, 0))
  for (const piece of pieces) bytes.append(piece)
  return bytes.bytes()
}

const encoder = new TextEncoder()
type TextType = 'input_text' | 'output_text'
const TEXT_TYPES = {
  input_text: encoder.encode('"input_text"'),
  output_text: encoder.encode('"output_text"'),
}
const COMMA = encoder.encode(',')
const quoted = (text: string) => JSON.stringify(text.slice(0, 100))
