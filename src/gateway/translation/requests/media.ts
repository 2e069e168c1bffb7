import { invalidRequest } from '../../../lib/api-error.ts'
import { entryOf, type Json, objectOf, present, textOf } from '../../protocols/json.ts'
import { refuseKind } from './member-rules.ts'

const DATA_URL = /^data:([^,]*?);base64,(.*)$/is
const PDF = 'application/pdf'
/** https://docs.anthropic.com/en/docs/build-with-claude/vision */
const IMAGE_TYPES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

/**
 * A content part of chat completions that is no text, as a block of the messages protocol.
 * @param place of the part in the request, for the error.
 * @throws ApiError for kinds that the messages protocol does not have.
 */
export function mediaBlock(part: Json, place: string): Json {
  const kind = textOf(part.type)
  const make = entryOf(FROM_CHAT, kind)
  if (!make) return refuseKind(kind, place, 'parts')
  return make(part, place)
}

const FROM_CHAT: Record<string, (part: Json, place: string) => Json> = {
  image_url(part, place) {
    const url = textOf(part.image_url) || textOf(objectOf(part.image_url).url)
    return { type: 'image', source: imageSource(url, `${place}.image_url.url`) }
  },
  file(part, place) {
    const file = objectOf(part.file)
    return present({
      type: 'document',
      source: pdfSource(file, `${place}.file`),
      title: textOf(file.filename) || undefined,
    })
  },
}

/**
 * The source of an image block.
 * @param url https or a base64 data URL. @param place of it in the request, for the error.
 * @throws ApiError for other URLs, and for images of kinds that the vendor does not read.
 */
export function imageSource(url: string, place: string): Json {
  const inline = inlineData(url)
  if (inline) {
    if (!IMAGE_TYPES.has(inline.mediaType)) {
      throw invalidRequest(`${place}: images must be JPEG, PNG, GIF or WebP.`)
    }
    return { type: 'base64', media_type: inline.mediaType, data: inline.data }
  }
  if (!/^https:\/\/./i.test(url)) {
    throw invalidRequest(`${place}: an image must be an https URL or a base64 data URL.`)
  }
  return { type: 'url', url }
}

/**
 * The source of a document block.
 * @param file with `file_data`, a data URL or base64 alone beside a `filename`. @param place of it, for the error.
 * @throws ApiError for files other than PDF.
 */
export function pdfSource(file: Json, place: string): Json {
  const data = textOf(file.file_data)
  if (data === '') {
    throw invalidRequest(
      `${place}: a file must be sent as file_data; files of other providers are unknown here.`,
    )
  }
  const named = /\.([^.]+)$/.exec(textOf(file.filename))?.[1]?.toLowerCase() ?? 'pdf'
  const inline = inlineData(data) ?? { mediaType: named === 'pdf' ? PDF : named, data }
  if (inline.mediaType !== PDF) {
    throw invalidRequest(`${place}: only PDF files are supported by this model: send others as text.`)
  }
  return { type: 'base64', media_type: PDF, data: inline.data }
}

/** A data URL, with its media type in lower case and without parameters. */
export function inlineData(url: string): { mediaType: string; data: string } | null {
  const [, header, data] = DATA_URL.exec(url) ?? []
  if (header === undefined || data === undefined) return null
  const mediaType = header.split(';')[0]?.trim().toLowerCase() ?? ''
  return { mediaType: mediaType === 'image/jpg' ? 'image/jpeg' : mediaType, data }
}

/**
 * A block of the messages protocol that is no text, as content parts of chat completions.
 * @throws ApiError for kinds that chat completions do not have.
 */
export function mediaParts(block: Json, place: string): Json[] {
  if (block.type === 'image') {
    const url = urlOf(objectOf(block.source))
    // Other schemes are those of storage at a vendor, which would be read with the rights of the gateway.
    if (url === null || !/^(https?|data):/i.test(url)) {
      throw invalidRequest(`${place}.source: an image must be sent as base64 or as a URL.`)
    }
    return [{ type: 'image_url', image_url: { url } }]
  }
  if (block.type === 'document') return documentParts(block, place)
  return refuseKind(textOf(block.type), place, 'blocks')
}

function documentParts(block: Json, place: string): Json[] {
  const source = objectOf(block.source)
  const about = [textOf(block.title), textOf(block.context)].filter((text) => text !== '')
  if (source.type === 'base64') {
    const filename = pdfName(textOf(block.title) || 'document')
    const context = textOf(block.context)
    return [
      ...(context === '' ? [] : [{ type: 'text', text: context }]),
      { type: 'file', file: { filename, file_data: urlOf(source) } },
    ]
  }
  if (source.type === 'text') return [{ type: 'text', text: [...about, textOf(source.data)].join('\n\n') }]
  if (source.type === 'content') {
    const content =
      typeof source.content === 'string' ? [{ type: 'text', text: source.content }] : source.content
    const parts = (Array.isArray(content) ? content : [])
      .map(objectOf)
      .flatMap((inner) =>
        inner.type === 'text'
          ? [{ type: 'text', text: textOf(inner.text) }]
          : mediaParts(inner, `${place}.source.content`),
      )
    return [...about.map((text) => ({ type: 'text', text })), ...parts]
  }
  throw invalidRequest(`${place}.source: a document must be sent as base64 or as text.`)
}

/**
 * A file as chat completions take it: named, and as a data URL.
 * @param data a data URL, or base64 alone, which counts as a PDF. @param name of the file, if known.
 */
export const dataUrlOfFile = (
  data: string,
  name: string | undefined,
): { filename: string; dataUrl: string } => ({
  filename: name || 'document.pdf',
  dataUrl: /^data:/i.test(data) ? data : `data:${PDF};base64,${data}`,
})

const pdfName = (title: string) => (/\.pdf$/i.test(title) ? title : `${title}.pdf`)

function urlOf(source: Json): string | null {
  if (source.type === 'url') return textOf(source.url)
  return source.type === 'base64' ? `data:${textOf(source.media_type)};base64,${textOf(source.data)}` : null
}
