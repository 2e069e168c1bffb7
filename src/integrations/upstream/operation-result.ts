import type { UpstreamToolResult } from '../types.ts'

/** Characters of the body of an error. */
const LONGEST_ERROR = 10_000

/** Turns the answer of an API into the result of a tool. */
export async function readResult(response: Response): Promise<UpstreamToolResult> {
  const { status, ok } = response
  const mediaType = (response.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (!ok) return errorResult(status, isText(mediaType) ? textOf(bytes) : '')
  if (bytes.length === 0) return { content: [{ type: 'text', text: `Status ${status}, without a body.` }] }
  if (isJson(mediaType)) return jsonResult(textOf(bytes))
  if (isText(mediaType)) return { content: [{ type: 'text', text: textOf(bytes) }] }
  return { content: [binaryContent(mediaType, bytes, response.url)] }
}

function errorResult(status: number, body: string): UpstreamToolResult {
  const text = `The API answered with status ${status}.${body === '' ? '' : ` ${body.slice(0, LONGEST_ERROR)}`}`
  return { content: [{ type: 'text', text }], isError: true }
}

/** Structured content is an object in revisions before 2026-07-28; text is for clients that read no structure. */
function jsonResult(text: string): UpstreamToolResult {
  const content = [{ type: 'text', text }]
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? { content, structuredContent: value } : { content }
  } catch {
    return { content }
  }
}

function binaryContent(mediaType: string, bytes: Uint8Array, uri: string): Record<string, unknown> {
  const data = Buffer.from(bytes).toString('base64')
  const mimeType = mediaType || 'application/octet-stream'
  if (mimeType.startsWith('image/')) return { type: 'image', data, mimeType }
  if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType }
  return { type: 'resource', resource: { uri: uri || 'urn:result', mimeType, blob: data } }
}

const isJson = (mediaType: string) => /^application\/(?:[\w.-]+\+)?json$/.test(mediaType)
const isText = (mediaType: string) =>
  mediaType === '' || /^text\/|json$|xml$|javascript$|yaml$/.test(mediaType)

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
