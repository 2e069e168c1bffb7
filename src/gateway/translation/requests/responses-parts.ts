import { invalidRequest } from '../../../lib/api-error.ts'
import { entryOf, isPresent, type Json, present } from '../../protocols/json.ts'
import { dataUrlOfFile, imageSource, pdfSource } from './media.ts'
import { refuseKind } from './member-rules.ts'
import { nameAt, objectAt, objectsAt, optionalText, textAt } from './read-values.ts'

/** Part of a message or of a tool output; `place` is its place in the request, for errors. */
export type Part =
  | { kind: 'text'; text: string }
  | { kind: 'refusal'; text: string }
  | { kind: 'image'; url: string; detail: string | undefined; place: string }
  | {
      kind: 'file'
      data: string | undefined
      url: string | undefined
      name: string | undefined
      place: string
    }
  | { kind: 'audio'; audio: Json; place: string }

/** Clients send back the parts of answers, and some use one type for all roles. */
const READERS: Record<string, (part: Json, place: string) => Part> = {
  input_text: textPart,
  output_text: textPart,
  text: textPart,
  refusal: (part, place) => ({ kind: 'refusal', text: textAt(part.refusal, `${place}.refusal`) }),
  input_image: imagePart,
  input_file: filePart,
  input_audio: audioPart,
}

/**
 * `content` of a message or `output` of a tool: a string or a list of parts.
 * @throws ApiError naming an invalid part, or one stored at another provider.
 */
export function partsAt(content: unknown, place: string): Part[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  if (!Array.isArray(content)) {
    throw invalidRequest(`${place}: Input should be a string or an array of parts.`)
  }
  return objectsAt(content, place).map(({ value, place }) => {
    const kind = nameAt(value.type, `${place}.type`)
    const reader = entryOf(READERS, kind)
    return reader ? reader(value, place) : refuseKind(kind, place, 'parts')
  })
}

function textPart(part: Json, place: string): Part {
  return { kind: 'text', text: textAt(part.text, `${place}.text`) }
}

function imagePart(part: Json, place: string): Part {
  refuseFileId(part, place)
  const url = nameAt(part.image_url, `${place}.image_url`)
  return {
    kind: 'image',
    url,
    detail: optionalText(part.detail, `${place}.detail`),
    place: `${place}.image_url`,
  }
}

function filePart(part: Json, place: string): Part {
  refuseFileId(part, place)
  const data = optionalText(part.file_data, `${place}.file_data`)
  const url = optionalText(part.file_url, `${place}.file_url`)
  if (!data && !url) throw invalidRequest(`${place}: a file must be sent as file_data or file_url.`)
  return { kind: 'file', data, url, name: optionalText(part.filename, `${place}.filename`), place }
}

function audioPart(part: Json, place: string): Part {
  const audio = objectAt(part.input_audio, `${place}.input_audio`)
  const data = nameAt(audio.data, `${place}.input_audio.data`)
  const format = nameAt(audio.format, `${place}.input_audio.format`)
  return { kind: 'audio', audio: { data, format }, place }
}

function refuseFileId(part: Json, place: string): void {
  if (!isPresent(part.file_id)) return
  throw invalidRequest(`${place}.file_id: files of other providers are unknown here: send the contents.`)
}

/** Values of `detail` on chat completions; `auto` is their default. */
const CHAT_DETAILS: Record<string, string> = { low: 'low', high: 'high', original: 'high' }

/**
 * A part as one of chat completions.
 * @throws ApiError for files by URL, which chat completions do not fetch.
 */
export function chatPart(part: Part): Json {
  if (part.kind === 'image') {
    const { url, detail = '' } = part
    const known = entryOf(CHAT_DETAILS, detail)
    return { type: 'image_url', image_url: present({ url, detail: known }) }
  }
  if (part.kind === 'audio') return { type: 'input_audio', input_audio: part.audio }
  if (part.kind !== 'file') return { type: 'text', text: part.text }
  if (!part.data) {
    throw invalidRequest(
      `${part.place}.file_url: files by URL are not supported by this model: send file_data.`,
    )
  }
  const { filename, dataUrl } = dataUrlOfFile(part.data, part.name)
  return { type: 'file', file: { filename, file_data: dataUrl } }
}

/**
 * A part as a block of the messages protocol; none for texts of nothing but white space, which the vendor refuses.
 * @throws ApiError for media that the protocol does not have.
 */
export function partBlocks(part: Part): Json[] {
  if (part.kind === 'image') return [{ type: 'image', source: imageSource(part.url, part.place) }]
  if (part.kind === 'audio') return refuseKind('input_audio', part.place, 'parts')
  if (part.kind !== 'file') return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text }]
  const source = part.data
    ? pdfSource({ file_data: part.data, filename: part.name }, `${part.place}.file_data`)
    : pdfUrl(part.url ?? '', `${part.place}.file_url`)
  return [present({ type: 'document', source, title: part.name || undefined })]
}

/** https://docs.anthropic.com/en/docs/build-with-claude/pdf-support */
function pdfUrl(url: string, place: string): Json {
  if (/^https:\/\/./i.test(url)) return { type: 'url', url }
  throw invalidRequest(`${place}: a file must be an https URL.`)
}
