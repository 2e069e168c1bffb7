import type { ByteEdit } from '../../../lib/byte-edits.ts'
import { isIdText } from '../../model/response-ids.ts'
import type { ItemMember, ItemPart, ItemScan } from './item-scan.ts'

// Checks that several types of items share when they are read from a request.

/** The change of a request's item before it is stored. */
export interface InputItemForm {
  role?: string
  callId?: string
  edits?: ByteEdit[]
  /** Members that are left out. */
  dropped?: ReadonlySet<string>
  /** Added members, as JSON without a leading comma. */
  added?: string[]
  /** Id of a stored item that this one may repeat with less content. */
  repeats?: string
}

const STATUSES = ['in_progress', 'completed', 'incomplete']
/** All of them are accepted in a message of any role, since histories are combined from several sources. */
const TEXT_PARTS = new Set(['text', 'input_text', 'output_text'])
const MEDIA_PARTS = new Set(['input_image', 'input_file', 'input_audio'])
/** Longer than the ids of any provider; some of them contain state. */
const LONGEST_ID = 4 * 1024

/** An item that is stored without checks, from the history of another service or of server-side tools. */
export function uncheckedItem(item: ItemScan): InputItemForm {
  return item.members.has('call_id') ? { callId: idOf(item, 'call_id') } : {}
}

/** Adds the status `completed` where the item has none. @throws ApiError for an unknown status. */
export function withStatus(item: ItemScan, form: InputItemForm): InputItemForm {
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

/** Reads an id or a name. The item keeps its spelling in JSON. @throws ApiError unless it is a non-empty string. */
export function idOf(item: ItemScan, name: string): string {
  const text = item.textOf(item.members.get(name))
  if (!text || text.length > LONGEST_ID) item.fail(name, 'must be a non-empty string')
  if (!isIdText(text)) item.fail(name, 'must be well-formed text on one line')
  return text
}

/** Reads a call of a tool of the caller. @param input the member with the input of the tool. */
export function readCall(item: ItemScan, input: 'arguments' | 'input'): InputItemForm {
  if (item.kindOf(input) !== 'string') item.fail(input, 'must be a string')
  idOf(item, 'name')
  const namespace = item.kindOf('namespace')
  if (namespace !== null && namespace !== 'null') idOf(item, 'namespace')
  return withStatus(item, { callId: idOf(item, 'call_id') })
}

/** Reads the output of a tool of the caller: a text or parts. */
export function readOutput(item: ItemScan): InputItemForm {
  const callId = idOf(item, 'call_id')
  const output = item.kindOf('output')
  if (output === 'string') return withStatus(item, { callId })
  if (output !== 'array') item.fail('output', 'must be a string or an array of parts')
  const edits = item.parts('output').flatMap((part, index) => {
    const at = `output[${index}]`
    const type = partType(item, part, at)
    return (
      inputPart(item, part, at, 'input_text') ??
      item.fail(`${at}.type`, `${quoted(type)} is no part of an output`)
    )
  })
  return withStatus(item, { callId, edits })
}

/**
 * Reads a text, image, file or audio part of a message or an output.
 * @param textType the type that texts have there. @returns null for any other part.
 */
export function inputPart(item: ItemScan, part: ItemPart, at: string, textType: TextType): ByteEdit[] | null {
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

/** Edits that convert a string content into a list with one text part. The string itself is not copied. */
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

/** A member with the value null counts as missing: official clients write all members. */
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
type TextType = 'input_text' | 'output_text'
const TEXT_TYPES = {
  input_text: encoder.encode('"input_text"'),
  output_text: encoder.encode('"output_text"'),
}
export const quoted = (text: string) => JSON.stringify(text.slice(0, 100))
