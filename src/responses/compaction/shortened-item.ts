import type { ContextItem } from '../model/types.ts'

/** Members of items and of their parts that are of no use without their middle: names, addresses and sealed content. */
const KEPT_WHOLE = new Set([
  'type',
  'id',
  'call_id',
  'name',
  'namespace',
  'server_label',
  'url',
  'encrypted_content',
])
const MEDIA_TYPES = new Set<unknown>(['input_image', 'input_file', 'input_audio'])
const LEFT_OUT = '[An image, file or sound is left out here.]'
/** Texts up to this length are not cut. */
const SHORT_TEXT = 200

type Json = Record<string, unknown>

/**
 * An item that no part of a summary could have, with its beginning and its end: long texts lose their middle, media are
 * left out.
 * @param most characters of its texts together, approximately.
 */
export function shortenedItem(item: ContextItem, most: number): ContextItem {
  const members = JSON.parse(decoder.decode(item.bytes)) as Json
  const texts = Math.max(1, countLong(members))
  const limit = Math.max(SHORT_TEXT, Math.floor(most / texts))
  return { ...item, bytes: encoder.encode(JSON.stringify(shortened(members, limit))) }
}

function countLong(value: unknown, name = ''): number {
  if (KEPT_WHOLE.has(name)) return 0
  if (typeof value === 'string') return value.length > SHORT_TEXT ? 1 : 0
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce((sum, [member, inner]) => sum + countLong(inner, member), 0)
}

/** @param name of the member that the value is, or is in a list of. */
function shortened(value: unknown, limit: number, name = ''): unknown {
  if (KEPT_WHOLE.has(name)) return value
  if (typeof value === 'string') {
    if (value.length <= limit) return value
    // Arguments have to stay JSON.
    return name === 'arguments' ? JSON.stringify({ shortened: cut(value, limit) }) : cut(value, limit)
  }
  if (Array.isArray(value)) return value.map((inner) => shortened(inner, limit, name))
  if (typeof value !== 'object' || value === null) return value
  if (MEDIA_TYPES.has((value as Json).type)) return { type: 'input_text', text: LEFT_OUT }
  return Object.fromEntries(
    Object.entries(value).map(([member, inner]) => [member, shortened(inner, limit, member)]),
  )
}

function cut(text: string, limit: number): string {
  const half = Math.floor(limit / 2)
  const left = text.length - 2 * half
  return `${text.slice(0, half)}\n[${left} characters are left out here.]\n${text.slice(text.length - half)}`.toWellFormed()
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
