import { invalidRequest } from '../../../lib/api-error.ts'
import { entryOf } from '../../protocols/json.ts'
import type { MediaPart } from './canonical-request.ts'
import { inlineData } from './media.ts'

/** Media types of files that are sent without one, by the ending of their name. */
const TYPES_OF_NAMES: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  xml: 'text/xml',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
}
/** Formats of `input_audio` (https://platform.openai.com/docs/api-reference/chat/create). */
const AUDIO_TYPES: Readonly<Record<string, string>> = { wav: 'audio/wav', mp3: 'audio/mp3' }

/**
 * An image of a URL.
 * @param url a base64 data URL. The wires that are written from canonical requests fetch nothing from the web, and a URI
 * of the vendor's own storage would be read with the rights of the gateway's credential, not of the caller.
 * @param place of the URL in the request, for the error.
 * @throws ApiError invalid_request for other URLs.
 */
export function imageOfUrl(url: string, place: string): MediaPart {
  const inline = inlineData(url)
  if (inline?.mediaType.startsWith('image/')) return { kind: 'image', ...inline }
  throw invalidRequest(`${place}: an image must be sent as a base64 data URL to this model.`)
}

/**
 * A file in base64, or as a data URL of it.
 * @param name of the file, if known; its ending is the type of data without one. PDF is the default.
 * @param place of the file in the request, for the error. @throws ApiError invalid_request for a file without data.
 */
export function fileOfData(data: string, name: string | undefined, place: string): MediaPart {
  if (data === '' || /^https?:/i.test(data)) {
    throw invalidRequest(`${place}: a file must be sent as its contents in base64 to this model.`)
  }
  const ending = /\.([^.]+)$/.exec(name ?? '')?.[1]?.toLowerCase() ?? 'pdf'
  const mediaType = entryOf(TYPES_OF_NAMES, ending) ?? 'application/pdf'
  const { mediaType: type, data: contents } = inlineData(data) ?? { mediaType, data }
  // Sounds have a price of their own, which only parts that say what they are can be held to.
  if (/^(audio|video)\//i.test(type)) {
    throw invalidRequest(`${place}: audio and video cannot be sent as files. Send audio as input_audio.`)
  }
  return { kind: kindOf(type), mediaType: type, data: contents, name }
}

/** @throws ApiError invalid_request for a format that chat completions do not have. */
export function audioOfData(data: string, format: string, place: string): MediaPart {
  const mediaType = entryOf(AUDIO_TYPES, format)
  if (mediaType && data !== '') return { kind: 'audio', mediaType, data }
  throw invalidRequest(`${place}: audio must be base64 data in the format wav or mp3.`)
}

function kindOf(mediaType: string): MediaPart['kind'] {
  if (mediaType.startsWith('image/')) return 'image'
  return mediaType.startsWith('audio/') ? 'audio' : 'document'
}
