import type { ByteEdit } from '../../lib/byte-edits.ts'
import { isIdText } from '../ids.ts'
import type { ItemMember, ItemPart, ItemScan } from './item-scan.ts'

// What types of items have in common when they are read from a request.

/** What reading an item of a request comes to. */
export interface GivenForm {
  role?: string
  callId?: string
  edits?: ByteEdit[]
  /** Members that are not taken over. */
  dropped?: ReadonlySet<string>
  /** Members that are added, as JSON without the comma before them. */
  added?: string[]
  /** Id of a stored item that this one may repeat with less in it. */
  repeats?: string
}

const STATUSES = ['in_progress', 'completed', 'incomplete']
/** Texts of any side are taken in a message of any role: histories are put together from several sources. */
const TEXT_PARTS = new Set(['text', 'input_text', 'output_text'])
const MEDIA_PARTS = new Set(['input_image', 'input_file', 'input_audio'])
/** Longer than the ids of any provider, of which some carry state in them. */
const LONGEST_ID = 4 * 1024

/** An item that is kept as it is given: histories of other gateways and of hosted tools hold such ones. */
export function keptItem(item: ItemScan): GivenForm {
  return item.members.has('call_id') ? { callId: idOf(item, 'call_id') } : {}
}

/** With the status `completed` where the item has none. @throws ApiError for a status that is none. */
export function withStatus(item: ItemScan, form: GivenForm): GivenForm {
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

/** An id or a name: a string with something in it. In the item it stays as it is spelled. */
export function idOf(item: ItemScan, name: string): string {
  const text = item.textOf(item.members.get(name))
  if (!text || text.length > LONGEST_ID) item.fail(name, 'must be a non-empty string')
  if (!isIdText(text)) item.fail(name, 'must be well-formed text on one line')
  return text
}

/** A call that a model made. @param input the member with what the tool is called with. */
export function givenCall(item: ItemScan, input: 'arguments' | 'input'): GivenForm {
  if (item.kindOf(input) !== 'string') item.fail(input, 'must be a string')
  idOf(item, 'name')
  const namespace = item.kindOf('namespace')
  if (namespace !== null && namespace !== 'null') idOf(item, 'namespace')
  return withStatus(item, { callId: idOf(item, 'call_id') })
}

/** What a tool of the caller answered: a text or parts. */
export function givenOutput(item: ItemScan): GivenForm {
  const callId = idOf(item, 'call_id')
  const output = item.kindOf('output')
  if (output === 'string') return withStatus(item, { callId })
  if (output !== 'array') item.fail('output', 'must be a string or an array of parts')
  const edits = item.parts('output').flatMap((part, index) => {
    const at = `output[${index}]`
    const type = partType(item, part, at)
    return (
      givenPart(item, part, at, 'input_text') ??
      item.fail(`${at}.type`, `${quoted(type)} is no part of an output`)
    )
  })
  return withStatus(item, { callId, edits })
}

/**
 * A text or a medium of a message or an output.
 * @param textType what texts are named there. @returns null for a part that is neither.
 */
export function givenPart(item: ItemScan, part: ItemPart, at: string, textType: TextType): ByteEdit[] | null {
  const type = partType(item, part, at)
  if (TEXT_PARTS.has(type)) return textPartEdits(item, part, at, textType)
  if (!MEDIA_PARTS.has(type) || textType === 'output_text') return null
  checkMedia(item, part, at, type)
  return []
}

export function partType(item: ItemScan, part: ItemPart, at: string): string {
  if (part.kind !== 'object') item.fail(at, 'must be an object')
  return item.textOf(part.members.get('type')) ?? item.fail(`${at}.type`, 'must be a string')
}

export function needString(item: ItemScan, part: ItemPart, at: string, name: string): void {
  if (part.members.get(name)?.kind !== 'string') item.fail(`${at}.${name}`, 'must be a string')
}

/** A content that is a string becomes a part, around the bytes that it is. */
export function asTextPart({ start, end }: ItemMember, textType: TextType): ByteEdit[] {
  const after = textType === 'output_text' ? ',"annotations":[]}]' : '}]'
  return [
    { start, end: start, replacement: encoder.encode(`[{"type":"${textType}","text":`) },
    { start: end, end, replacement: encoder.encode(after) },
  ]
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

const encoder = new TextEncoder()
export type TextType = 'input_text' | 'output_text'
const TEXT_TYPES = {
  input_text: encoder.encode('"input_text"'),
  output_text: encoder.encode('"output_text"'),
}
export const quoted = (text: string) => JSON.stringify(text.slice(0, 100))
