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
  return name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, LONGEST - mark.length) + mark
}

/**
 * @param request of a caller, in either protocol.
 * @returns the caller's names of those tools that upstream know under another one, by that other one; for the tool
 * calls of the answer.
 */
export function originalToolNames(request: Json): ReadonlyMap<string, string> {
  const names = listOf(request.tools).map((tool) => textOf(objectOf(tool.function).name) || textOf(tool.name))
  return new Map(
    names.filter((name) => usableToolName(name) !== name).map((name) => [usableToolName(name), name]),
  )
}

/** FNV-1a over UTF-16 units, 64 bits. */
function hashOf(text: string): string {
  let hash = 0xcbf29ce484222325n
  for (let index = 0; index < text.length; index++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(index))) * 0x100000001b3n)
  }
  return hash.toString(36)
}
