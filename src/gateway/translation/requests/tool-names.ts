import { type Json, listOf, objectOf, textOf } from '../json.ts'

/**
 * Both vendors take letters, digits, `_` and `-`; 64 characters are taken everywhere, 128 by some
 * (https://platform.openai.com/docs/api-reference/chat/create, https://docs.anthropic.com/en/docs/tool-use).
 */
const USABLE = /^[A-Za-z0-9_-]{1,64}$/
const LONGEST = 64

/**
 * A tool's name as it may be told upstream: itself where it may, else a short form that depends on the name alone, so
 * that every request of a conversation says the same.
 */
export function usableToolName(name: string): string {
  if (USABLE.test(name)) return name
  const mark = `_${hashOf(name)}`
  const beginning = name.slice(0, LONGEST - mark.length)
  return beginning.replace(/[^A-Za-z0-9_-]/g, '_') + mark
}

/**
 * @param request of a caller, in either protocol.
 * @returns the caller's names of those tools that upstream know under another one, by that other one; for the tool
 * calls of the answer.
 */
export function originalToolNames(request: Json): ReadonlyMap<string, string> {
  const names = listOf(request.tools).map((tool) => textOf(objectOf(tool.function).name) || textOf(tool.name))
  const told = names.map((name) => [usableToolName(name), name] as const)
  return new Map(told.filter(([usable, name]) => usable !== name))
}

/**
 * Two runs of FNV-1a over UTF-16 units, each of 32 bits with a start and a factor of its own. One of 64 bits would need
 * big integers, which take a second for a name that fills a body.
 */
function hashOf(text: string): string {
  let first = 0x811c9dc5
  let second = 0x2b5a4c97
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    first = Math.imul(first ^ unit, 0x01000193)
    second = Math.imul(second ^ unit, 0x9e3779b1)
  }
  return [first, second].map((half) => (half >>> 0).toString(36).padStart(7, '0')).join('')
}
