import type { JsonPath } from '../../lib/json-scan.ts'

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

/** Members whose `data` is encoded content that no text engine can read. */
const BINARY_PARENTS = new Set(['source', 'input_audio', 'audio', 'file'])
const DATA_URL = [0x64, 0x61, 0x74, 0x61, 0x3a]

/**
 * @param path of a string value. @param bytes with its contents from `start`.
 * @returns whether the string is text that an engine inspects.
 */
export function isText(path: JsonPath, bytes: Uint8Array, start: number): boolean {
  // What a tool is called with is the caller's own data, whatever its members are named.
  if (path.includes('input') || path.includes('properties')) return true
  const name = lastName(path)
  if (TECHNICAL.has(name)) return false
  if (name === 'data' || name === 'file_data') return !BINARY_PARENTS.has(String(path[path.length - 2]))
  if (name === 'url') return !DATA_URL.every((byte, index) => bytes[start + index] === byte)
  return true
}

function lastName(path: JsonPath): string {
  for (let index = path.length - 1; index >= 0; index--) {
    const part = path[index]
    if (typeof part === 'string') return part
  }
  return ''
}
