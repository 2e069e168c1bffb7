import * as z from 'zod'
import { encodeJsonCursor, jsonCursor } from '../../wire/page-cursor.ts'
import type { ToolDefinition } from '../types.ts'
import { type Era, invalidParams, JsonMembers, type RpcReply } from './json-rpc.ts'
import type { VisibleTool } from './visible-tools.ts'

const PAGE_SIZE = 200

/** Time for which a client may use a list (MCP 2026-07-28, Caching). */
export const LIST_TTL_MS = 60_000

/** The last tool of a page: the next one begins after it, also if tools were added or removed meanwhile. */
const cursorSchema = jsonCursor(z.tuple([z.literal('after'), z.string().max(200)]))

/**
 * One page of tools (MCP, tools/list).
 * @param tools in order of their names. @param cursor `params.cursor` of the request, unchecked.
 */
export function toolsPage(tools: readonly VisibleTool[], cursor: unknown, era: Era): RpcReply {
  const parsed = cursor === undefined ? null : cursorSchema.safeParse(cursor)
  if (parsed?.success === false) return invalidParams('The cursor is not one of this list.')
  const start = parsed === null ? 0 : firstAfter(tools, parsed.data[1])
  const page = tools.slice(start, start + PAGE_SIZE)
  const last = page.at(-1)
  const hasMore = last !== undefined && start + PAGE_SIZE < tools.length
  const members = [`"tools":[${page.map((tool) => toolText(tool, era)).join(',')}]`]
  if (hasMore) members.push(`"nextCursor":${JSON.stringify(encodeJsonCursor(['after', last.name]))}`)
  if (era === 'modern') members.push(`"ttlMs":${LIST_TTL_MS},"cacheScope":"private"`)
  return { kind: 'result', result: new JsonMembers(members.join(',')) }
}

/** Index of the first tool after a name, by binary search: names are sorted by code unit. */
function firstAfter(tools: readonly VisibleTool[], name: string): number {
  let [low, high] = [0, tools.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((tools[middle] as VisibleTool).name <= name) low = middle + 1
    else high = middle
  }
  return low
}

/** Texts by definition, so that a list of thousands of tools consists of existing texts. */
const texts: Record<Era, WeakMap<ToolDefinition, { name: string; text: string }>> = {
  legacy: new WeakMap(),
  modern: new WeakMap(),
}

function toolText({ name, definition }: VisibleTool, era: Era): string {
  const known = texts[era].get(definition)
  if (known?.name === name) return known.text
  const text = JSON.stringify(listedTool(name, definition, era), withoutHeaderNames)
  texts[era].set(definition, { name, text })
  return text
}

function listedTool(name: string, definition: ToolDefinition, era: Era): Record<string, unknown> {
  const { title, description, inputSchema, outputSchema, annotations } = definition
  // Before 2026-07-28 results are objects, and clients refuse a list with another schema.
  const hasOutput = outputSchema !== undefined && (era === 'modern' || outputSchema.type === 'object')
  return { name, title, description, inputSchema, ...(hasOutput && { outputSchema }), annotations }
}

/**
 * `x-mcp-header` concerns the gateway as the client of the upstream: the caller's headers are not forwarded (MCP
 * 2026-07-28, Transports).
 */
const withoutHeaderNames = (key: string, value: unknown) => (key === 'x-mcp-header' ? undefined : value)
