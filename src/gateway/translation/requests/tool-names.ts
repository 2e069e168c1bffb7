import { sha256Hex } from '../../../lib/crypto.ts'
import { type Json, listOf, objectOf, textOf } from '../../protocols/json.ts'

/**
 * Both vendors take letters, digits, `_` and `-`; 64 characters are taken everywhere, 128 by some
 * (https://platform.openai.com/docs/api-reference/chat/create, https://docs.anthropic.com/en/docs/tool-use).
 */
const USABLE = /^[A-Za-z0-9_-]{1,64}$/
const LONGEST = 64
const MARK_LENGTH = 14

/**
 * A tool's name as upstreams accept it: unchanged where possible, else a short form with a hash. It depends on the name
 * alone, so that every request of a conversation has the same one.
 */
export function usableToolName(name: string): string {
  if (USABLE.test(name)) return name
  const mark = `_${sha256Hex(name).slice(0, MARK_LENGTH)}`
  const beginning = name.slice(0, LONGEST - mark.length)
  return beginning.replace(/[^A-Za-z0-9_-]/g, '_') + mark
}

/**
 * @param request of a caller, in either protocol.
 * @returns the caller's names of tools with another upstream name, by that name; for the tool calls of the answer.
 */
export function originalToolNames(request: Json): ReadonlyMap<string, string> {
  const names = listOf(request.tools).map((tool) => textOf(objectOf(tool.function).name) || textOf(tool.name))
  const pairs = names.map((name) => [usableToolName(name), name] as const)
  return new Map(pairs.filter(([usable, name]) => usable !== name))
}
