import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, objectOf, present, textOf } from '../json.ts'

const DATA_URL = /^data:([^;,]+);base64,(.*)$/s

/**
 * A content part of chat completions that is no text, as a block of the messages protocol.
 * @throws ApiError for kinds that the messages protocol does not have.
 */
export function mediaBlock(part: Json, place: string): Json {
  const make = FROM_CHAT[textOf(part.type)]
  if (!make)
    throw invalidRequest(`${place}: parts of type ${textOf(part.type)} are not supported by this model.`)
  return present({ ...make(part, place), cache_control: part.cache_control })
}

const FROM_CHAT: Record<string, (part: Json, place: string) => Json> = {
  image_url: (part) => ({ type: 'image', source: sourceOf(textOf(objectOf(part.image_url).url)) }),
  file(part, place) {
    const file = objectOf(part.file)
    const data = textOf(file.file_data)
    if (data === '') throw invalidRequest(`${place}: a file must be sent as file_data.`)
    return present({ type: 'document', source: sourceOf(data), title: file.filename })
  },
}

function sourceOf(url: string): Json {
  const [, mediaType, data] = DATA_URL.exec(url) ?? []
  return mediaType === undefined ? { type: 'url', url } : { type: 'base64', media_type: mediaType, data }
}

/** A block of the messages protocol that is no text, as a content part of chat completions. */
export function mediaPart(block: Json, place: string): Json {
  const source = objectOf(block.source)
  if (block.type === 'image' && urlOf(source)) return { type: 'image_url', image_url: { url: urlOf(source) } }
  if (block.type === 'document') {
    if (source.type === 'text') return { type: 'text', text: textOf(source.data) }
    if (source.type === 'base64') {
      const filename = textOf(block.title) || 'document.pdf'
      return { type: 'file', file: { filename, file_data: urlOf(source) } }
    }
  }
  throw invalidRequest(`${place}: blocks of type ${textOf(block.type)} are not supported by this model.`)
}

function urlOf(source: Json): string | null {
  if (source.type === 'url') return textOf(source.url)
  return source.type === 'base64' ? `data:${textOf(source.media_type)};base64,${textOf(source.data)}` : null
}
