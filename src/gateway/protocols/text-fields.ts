import { dataUrlHead } from '../../dlp/source/encoded-text.ts'
import { decodeString } from '../../lib/json-string.ts'
import type { JsonPath } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { isIdentifier, isWord, type KnownObject, technicalKind } from './technical-members.ts'

/**
 * Members of an answer or item that are not text. All others are: a member that a vendor adds later is inspected from
 * its first day. The path of a string decides too in requests (`requestString`).
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

/** Names without digits and punctuation are protocol names or words. */
export const PLAIN_NAME = /^[A-Za-z_]{1,40}$/

/** Members that hold tool input or schemas: the caller's own data, under any member names. */
export const OWN_DATA: ReadonlySet<string> = new Set([
  'input',
  'properties',
  'parameters',
  'input_schema',
  'schema',
])

/** Types of parts and blocks whose content is not text. */
export const IMAGE_TYPES = ['image_url', 'image', 'input_audio', 'input_image']
export const FILE_TYPES = ['file', 'container_upload', 'input_file', 'video_url', 'input_video']
const UNREADABLE = new Set([...IMAGE_TYPES, ...FILE_TYPES, 'document_url'])
/** Types of parts and blocks whose content is text, beside results and calls of tools (`isPartType`). */
const READABLE = new Set([
  'text',
  'input_text',
  'output_text',
  'refusal',
  'thinking',
  'redacted_thinking',
  'summary_text',
  'reasoning',
  'reasoning_text',
  'document',
  'search_result',
  'tool_reference',
  'compaction',
  'fallback',
])
const READABLE_ENDING = /(?:^|_)(?:tool_use|tool_result|result|tool_result_error)$/
/** Members of parts that hold, or refer to, content that is not text, whatever the type of the part. */
const UNREADABLE_MEMBERS = new Set([
  'image_url',
  'image',
  'image_embeds',
  'input_audio',
  'audio',
  'audio_url',
  'audio_embeds',
  'video',
  'video_url',
  'input_video',
  'file',
  'file_data',
  'file_id',
  'file_url',
])
/** Sources of the messages protocol whose content is text that stands there. */
const READABLE_SOURCES = new Set(['text', 'content'])
/** The longest of these types with every character written as an escape. */
export const LONGEST_TYPE_BYTES = 6 * 16

/** Members whose `data` is usually encoded content that no text engine can read. */
const BINARY_PARENTS = new Set(['source', 'input_audio', 'audio', 'file'])
/** Members that may be data URLs; in responses an image is one without an object around it. */
const DATA_URL_MEMBERS = new Set(['url', 'image_url', 'file_url', 'file_data'])
const SHORTEST_DATA_URL_BYTES = 'data:;base64,'.length
/** A shorter run of base64 characters may as well be a word or a number. */
const SHORTEST_BASE64_BYTES = 64

/**
 * @param path of a string value. @param bytes with its contents from `start` to `end`.
 * @returns whether the string is text that an engine inspects.
 */
export function isText(path: JsonPath, bytes: Uint8Array, start: number, end: number): boolean {
  if (path.some((part) => OWN_DATA.has(String(part)))) return true
  const name = lastName(path)
  if (TECHNICAL.has(name)) return false
  return !isBinary(path, bytes, start, end, name)
}

/** Places in a request of strings that are not the caller's text. */
export interface RequestMembers {
  /** Members that hold the caller's own data, under any names within them. */
  ownData: ReadonlySet<string>
  /** Tree of the members that hold technical strings. */
  members: KnownObject
}

/**
 * Treatment of a string of a request: `text` is inspected; `fixed` is inspected and never changed; `encoded` may be
 * text in base64; a `word` of the protocol is not inspected.
 */
type RequestString = 'text' | 'fixed' | 'encoded' | 'word'

/** @returns the treatment of a string by its path and form. @param texts of its protocol. */
export function requestString(
  texts: RequestMembers,
  path: JsonPath,
  bytes: Uint8Array,
  start: number,
  end: number,
  name: string,
  own: boolean,
): RequestString {
  if (own) return 'text'
  const kind = technicalKind(texts.members, path, name)
  if (kind === 'fixed') return isIdentifier(bytes, start, end) ? 'fixed' : 'text'
  if (kind !== null) return kind === 'ours' || isWord(bytes, start, end) ? 'word' : 'text'
  return isEncoded(path, bytes, start, end, name) ? 'encoded' : 'text'
}

/** Whether a string is content that no text engine reads, such as an image, or the type of such content. */
export function isUnreadable(
  path: JsonPath,
  bytes: Uint8Array,
  start: number,
  end: number,
  name = lastName(path),
  own = path.some((part) => OWN_DATA.has(String(part))),
): boolean {
  if (own) return false
  // The type of a source decides: its data may be text that looks like base64.
  if (path[path.length - 2] === 'source' && name === 'data') return false
  if (name !== 'type') return !TECHNICAL.has(name) && isEncoded(path, bytes, start, end, name)
  // A document is as readable as its source.
  if (path[path.length - 2] === 'source') return !isType(READABLE_SOURCES, bytes, start, end)
  return isType(UNREADABLE, bytes, start, end)
}

/**
 * Whether a string of a request shows that a part cannot be inspected: its type is not one of text, or one of its members
 * holds such content. A type that a vendor adds later counts as one that cannot, until it is known here.
 */
export function unreadablePart(path: JsonPath, bytes: Uint8Array, start: number, end: number): boolean {
  const member = memberOfPart(path)
  if (member === null) return false
  if (path[member] !== 'type') return UNREADABLE_MEMBERS.has(String(path[member]))
  if (path.length > member + 1) return false
  const type = decodeString(bytes, start, Math.min(end, start + LONGEST_TYPE_BYTES))
  return !READABLE.has(type) && !READABLE_ENDING.test(type)
}

/** The index in a path of the member of the innermost part or block; null outside of parts. */
export function memberOfPart(path: JsonPath): number | null {
  for (let index = path.length - 2; index > 0; index--) {
    const list = path[index - 1]
    if (typeof path[index] === 'number' && (list === 'content' || list === 'output')) return index + 1
  }
  return null
}

const isType = (types: ReadonlySet<string>, bytes: Uint8Array, start: number, end: number): boolean =>
  end - start <= LONGEST_TYPE_BYTES && types.has(decodeString(bytes, start, end))

/**
 * Whether a string is in base64 by its place or head, whatever it looks like: upstreams skip characters that are not of
 * base64. It is inspected in both forms.
 */
function isEncoded(path: JsonPath, bytes: Uint8Array, start: number, end: number, name: string): boolean {
  const contents = encodedContents(path, bytes, start, end, name)
  return contents !== null && end - contents >= SHORTEST_BASE64_BYTES
}

/** Whether a string is encoded, if its contents look like base64: the `data` of a plain text document is that text. */
function isBinary(path: JsonPath, bytes: Uint8Array, start: number, end: number, name: string): boolean {
  const contents = encodedContents(path, bytes, start, end, name)
  return contents !== null && isBase64(bytes, contents, end)
}

/** Where the contents begin of a string that is in base64 by its place or head; null for any other. */
function encodedContents(
  path: JsonPath,
  bytes: Uint8Array,
  start: number,
  end: number,
  name: string,
): number | null {
  if (DATA_URL_MEMBERS.has(name) && end - start >= SHORTEST_DATA_URL_BYTES) {
    const head = dataUrlHead(bytes.subarray(start, end))
    if (head > 0) return start + head
  }
  const isData = name === 'data' && BINARY_PARENTS.has(String(path[path.length - 2]))
  return isData || name === 'file_data' ? start : null
}

/** The last member name on a path, '' without one. */
export function lastName(path: JsonPath): string {
  for (let index = path.length - 1; index >= 0; index--) {
    const part = path[index]
    if (typeof part === 'string') return part
  }
  return ''
}

/** Whether a string has no character that base64 has not. */
export function isBase64(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < SHORTEST_BASE64_BYTES) return false
  // The bytes are copied to ordinary memory: a large body is in a resizable buffer, which the engine reads slowly byte by byte.
  const space = new Uint8Array(Math.min(COPIED_BYTES, end - start))
  for (let at = start; at < end; at += COPIED_BYTES) {
    const part = bytes.subarray(at, Math.min(end, at + COPIED_BYTES))
    space.set(part)
    for (let index = 0; index < part.length; index++) if (!BASE64[space[index] as number]) return false
  }
  return true
}

/** `isBase64` in slices, for the contents of a string from `start` on. */
export function* isBase64InSlices(contents: Uint8Array, start: number): Slices<boolean> {
  for (let at = start; at < contents.length; at += SLICE_BYTES) {
    // The last part takes what would be too short by itself.
    const isLast = contents.length - at < 2 * SLICE_BYTES
    if (!isBase64(contents, at, isLast ? contents.length : at + SLICE_BYTES)) return false
    if (isLast) return true
    yield
  }
  return false
}

const SLICE_BYTES = 64 * 1024
const COPIED_BYTES = 16 * 1024

/** Indexed by byte: 1 for the characters of base64. The backslash is included because `/` may be written as `\/`. */
const BASE64 = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[A-Za-z0-9+/=_\\-]/.test(String.fromCharCode(byte)) ? 1 : 0,
)
