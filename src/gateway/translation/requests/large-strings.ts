import { randomBase62 } from '../../../lib/ids.ts'
import { scanJson } from '../../../lib/json-scan.ts'
import type { JsonPath } from '../../../lib/json-visitor.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/** Bytes of contents, escapes as written. Below it a placeholder saves little. */
const LARGE = 16 * 1024
const CUT_MEMBERS = new Set(['text', 'content', 'data', 'url', 'file_data'])
/** Large strings within the items of a responses request, where a caller's own JSON is a string. */
const CUT_OF_ITEMS = new Set(['text', 'content', 'output', 'image_url', 'file_data', 'data'])
/** Members that hold a caller's own JSON, of which converters serialize some into a string. */
const OWN_JSON = ['input', 'properties', 'arguments']
const DATA_URL = /^data:[^,]*;base64,/i
const DATA_URL_HEAD = 200

/**
 * Random token of the placeholders of a body, so that no text of a caller can contain one. By the list of the strings
 * that were cut.
 */
const tokens = new WeakMap<readonly Uint8Array[], string>()

const placeholder = (token: string, index: number) => `~${token}.${index}~`

/** The body is too large even without its long strings. */
export class TooMuchLeftError extends Error {}

/**
 * Takes the contents of long strings of a conversation out of a body, so that a large one is translated with a small
 * tree. The head of a data URL stays, because it has the media type.
 * @param body JSON. @param mostBytes limit of the rest, checked before it is decoded: text takes up to twice the
 * memory.
 * @returns the JSON text with placeholders, and the strings that were cut: views of `body`, with their escapes.
 * @throws JsonSyntaxError for a body that is searched, TooMuchLeftError
 */
export function cutLargeStrings(
  body: Uint8Array,
  mostBytes = Number.POSITIVE_INFINITY,
): { text: string; cut: Uint8Array[] } {
  const cut: Uint8Array[] = []
  // A body shorter than a large string cannot contain one.
  if (body.length < LARGE && body.length <= mostBytes) return { text: decoder.decode(body), cut }
  const token = randomBase62(22)
  const cuts: Array<{ from: number; end: number }> = []
  let left = body.length
  scanJson(body, {
    string(path, start, end) {
      const from = end - start < LARGE || !holdsContent(path) ? -1 : cutFrom(path, body, start, end)
      if (from < 0) return
      cuts.push({ from, end })
      left -= end - from
    },
    valueDepth: -1,
  })
  if (left > mostBytes) throw new TooMuchLeftError()
  let text = ''
  let at = 0
  for (const { from, end } of cuts) {
    text += decoder.decode(body.subarray(at, from)) + placeholder(token, cut.length)
    cut.push(body.subarray(from, end))
    at = end
  }
  if (cut.length > 0) tokens.set(cut, token)
  return { text: text + decoder.decode(body.subarray(at)), cut }
}

function holdsContent(path: JsonPath): boolean {
  const name = path[path.length - 1]
  // Only in legacy completions: the prompt, or one of several.
  if (path[0] === 'prompt') return path.length === 1 || (path.length === 2 && typeof name === 'number')
  if (path[0] === 'input') return CUT_OF_ITEMS.has(String(name))
  if (path[0] === 'instructions') return path.length === 1
  if (path[0] !== 'messages' && path[0] !== 'system') return false
  return CUT_MEMBERS.has(String(name)) && !OWN_JSON.some((own) => path.includes(own))
}

/** @returns where the cut begins, or -1 for a string that stays. */
function cutFrom(path: JsonPath, body: Uint8Array, start: number, end: number): number {
  const name = path[path.length - 1]
  if (name !== 'url' && name !== 'image_url' && name !== 'file_data') return start
  // Latin-1, so that characters and bytes count alike.
  const head = String.fromCharCode(...body.subarray(start, Math.min(start + DATA_URL_HEAD, end)))
  const url = DATA_URL.exec(head)
  if (url) return start + url[0].length
  return name === 'file_data' ? start : -1
}

/**
 * Replaces the placeholders in a translated body with the strings that were cut.
 * @param json from `JSON.stringify`. @param cut from `cutLargeStrings`.
 * @returns pieces of the body, in order.
 */
export function restoreLargeStrings(json: string, cut: readonly Uint8Array[]): Uint8Array[] {
  const token = tokens.get(cut)
  if (token === undefined) return [encoder.encode(json)]
  const pieces: Uint8Array[] = []
  let at = 0
  for (const mark of json.matchAll(new RegExp(`~${token}\\.(\\d+)~`, 'g'))) {
    const contents = cut[Number(mark[1])]
    if (!contents) continue
    pieces.push(encoder.encode(json.slice(at, mark.index)), contents)
    at = mark.index + mark[0].length
  }
  return [...pieces, encoder.encode(json.slice(at))]
}
