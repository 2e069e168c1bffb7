import { decodeString, type JsonPath } from '../../lib/json-scan.ts'
import type { RequestTexts } from './protocol.ts'

/**
 * Which strings of a message are text. Everything is, unless it is listed: a member that a vendor adds tomorrow is
 * inspected from its first day.
 */
const TECHNICAL = new Set([
  'model',
  'role',
  'type',
  'id',
  'object',
  'tool_call_id',
  'tool_use_id',
  'media_type',
  'signature',
  'encrypted_content',
  'finish_reason',
  'stop_reason',
  'system_fingerprint',
  'service_tier',
  'obfuscation',
  'ttl',
  'detail',
  'format',
])

/** What a tool is called with, and schemas, are the caller's own data, whatever their members are named. */
export const OWN_DATA: ReadonlySet<string> = new Set([
  'input',
  'properties',
  'parameters',
  'input_schema',
  'schema',
])

/** Types of parts and blocks whose content is not text. */
const UNREADABLE = new Set([
  'image_url',
  'image',
  'input_audio',
  'input_image',
  'document_url',
  'file',
  'container_upload',
  'input_file',
  'video_url',
  'input_video',
])
/** Sources of the messages protocol whose content is text that stands there. */
const READABLE_SOURCES = new Set(['text', 'content'])
/** The longest of these, if every character of it is written as an escape. */
const LONGEST_TYPE_BYTES = 6 * 16

/** Members whose `data` is, as a rule, encoded content that no text engine can read. */
const BINARY_PARENTS = new Set(['source', 'input_audio', 'audio', 'file'])
/** Members that may be data URLs; in responses an image is one without an object around it. */
const DATA_URL_MEMBERS = new Set(['url', 'image_url', 'file_url', 'file_data'])
/** A data URL says within its first bytes whether it is encoded. */
const DATA_URL = /^data:[^,]*;base64,/
const DATA_URL_HEAD_BYTES = 200
const SHORTEST_DATA_URL_BYTES = 'data:;base64,'.length
/** A shorter run of base64 characters may as well be a word or a number. */
const SHORTEST_BASE64_BYTES = 64

/**
 * @param path of a string value. @param bytes with its contents from `start` to `end`.
 * @param name the last member name on the path. @param own whether one of `OWN_DATA` is on it.
 * @returns whether the string is text that an engine inspects.
 */
export function isText(
  path: JsonPath,
  bytes: Uint8Array,
  start: number,
  end: number,
  name = lastName(path),
  own = path.some((part) => OWN_DATA.has(String(part))),
): boolean {
  if (own) return true
  if (TECHNICAL.has(name)) return false
  return !isBinary(path, bytes, start, end, name)
}

/** @returns whether a string of a request is such text. @param texts of its protocol. */
export const isRequestText = (
  texts: RequestTexts,
  path: JsonPath,
  bytes: Uint8Array,
  start: number,
  end: number,
  name: string,
  own: boolean,
): boolean => !texts.isTechnical?.(path) && isText(path, bytes, start, end, name, own)

/** The same string, whether it is or tells of content that no text engine reads, such as an image. */
export function isUnreadable(
  path: JsonPath,
  bytes: Uint8Array,
  start: number,
  end: number,
  name = lastName(path),
  own = path.some((part) => OWN_DATA.has(String(part))),
): boolean {
  if (own) return false
  if (name !== 'type') return !TECHNICAL.has(name) && isBinary(path, bytes, start, end, name)
  // A document is as readable as its source.
  if (path[path.length - 2] === 'source') return !isType(READABLE_SOURCES, bytes, start, end)
  return isType(UNREADABLE, bytes, start, end)
}

const isType = (types: ReadonlySet<string>, bytes: Uint8Array, start: number, end: number): boolean =>
  end - start <= LONGEST_TYPE_BYTES && types.has(decodeString(bytes, start, end))

function isBinary(path: JsonPath, bytes: Uint8Array, start: number, end: number, name: string): boolean {
  if (DATA_URL_MEMBERS.has(name) && end - start >= SHORTEST_DATA_URL_BYTES) {
    if (DATA_URL.test(latin1(bytes.subarray(start, Math.min(end, start + DATA_URL_HEAD_BYTES))))) return true
  }
  // The `data` of a plain text document is that text, and its path is the same.
  const binary =
    name === 'file_data' || (name === 'data' && BINARY_PARENTS.has(String(path[path.length - 2])))
  return binary && isBase64(bytes, start, end)
}

/** The last member name on a path, '' without one. */
export function lastName(path: JsonPath): string {
  for (let index = path.length - 1; index >= 0; index--) {
    const part = path[index]
    if (typeof part === 'string') return part
  }
  return ''
}

function isBase64(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < SHORTEST_BASE64_BYTES) return false
  // In ordinary memory: a large body lies in a resizable buffer, which the engine reads slowly byte by byte.
  const space = new Uint8Array(Math.min(COPIED_BYTES, end - start))
  for (let at = start; at < end; at += COPIED_BYTES) {
    const part = bytes.subarray(at, Math.min(end, at + COPIED_BYTES))
    space.set(part)
    for (let index = 0; index < part.length; index++) if (!BASE64[space[index] as number]) return false
  }
  return true
}

const COPIED_BYTES = 16 * 1024

/** By byte. The backslash is there because `/` may be written as `\/`. */
const BASE64 = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[A-Za-z0-9+/=_\\-]/.test(String.fromCharCode(byte)) ? 1 : 0,
)

const latin1 = (bytes: Uint8Array) => String.fromCharCode(...bytes)
