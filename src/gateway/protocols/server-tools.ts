import { invalidRequest } from '../../lib/api-error.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { JsonKind } from '../../lib/json-visitor.ts'

/** A tool that runs at the provider. */
export interface ServerTool {
  /** Type without the date of its version. */
  type: string
  /** Date of its version, as YYYYMMDD; null without one. */
  version: string | null
  /** Maximum number of times that the provider may run the tool; null without a limit. */
  mostUses: number | null
  /** The most tokens of one result, as the request limits them; null without a limit. */
  mostResultTokens: number | null
}

/**
 * Uses of a tool whose request has no limit. A provider has none either, and could read its whole context after each use, so
 * that a reservation for it would be refused to most callers.
 */
export const DEFAULT_USES = 5
/** Tools that take `max_uses`. https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool */
const TAKE_LIMIT = new Set(['web_search', 'web_fetch'])
/** Types of tools that the caller runs itself, without the date of their version. */
const CLIENT_TOOLS = new Set(['function', 'custom', 'bash', 'text_editor', 'computer', 'memory'])
/** Members that are read of all tools together, which bounds their memory. */
const MOST_MEMBERS = 1_000
const VERSION_DATE = /_(\d{8})$/
const encoder = new TextEncoder()
const decoder = new TextDecoder()

interface Place {
  start: number
  end: number
}

/** Members of one element of `tools`, as the scan of a request reads them. */
interface ScannedTool {
  /** Several types where `type` is given more than once: parsers differ in which one they take. */
  types: Array<Pick<ServerTool, 'type' | 'version'>>
  start: number
  uses: number[]
  /** Values of `max_uses` that are null. */
  unlimited: Place[]
  resultTokens: number[]
  hasUses: boolean
}

/** Reads the elements of `tools` during the scan of a request. */
export class ToolScan {
  /** Tools of the provider's definition, server tools among them. */
  provided = 0
  readonly #body: Uint8Array
  readonly #tools = new Map<unknown, ScannedTool>()
  #membersRead = 0

  constructor(body: Uint8Array) {
    this.#body = body
  }

  /** @param mayBeServed whether the provider may run tools of this request. */
  type(index: unknown, type: string, mayBeServed: boolean): void {
    const name = type.replace(VERSION_DATE, '')
    if (name !== type) this.provided++
    if (!mayBeServed || CLIENT_TOOLS.has(name)) return
    this.#toRead(index).types.push({ type: name, version: VERSION_DATE.exec(type)?.[1] ?? null })
  }

  /** A member of a tool has ended. */
  member(index: unknown, name: unknown, kind: JsonKind, place: Place): void {
    if (name === 'max_content_tokens') {
      this.#toRead(index).resultTokens.push(kind === 'null' ? Number.POSITIVE_INFINITY : this.#number(place))
    }
    if (name !== 'max_uses') return
    const tool = this.#toRead(index)
    tool.hasUses = true
    if (kind === 'null') tool.unlimited.push(place)
    else tool.uses.push(this.#number(place))
  }

  /** A tool has ended. */
  end(index: unknown, start: number): void {
    // A look-up for each of millions of elements would double the time of the scan.
    if (this.#tools.size === 0) return
    const tool = this.#tools.get(index)
    if (tool) tool.start = start
  }

  /** @param limits whether the uses are limited by `limits()`. */
  tools(limits: boolean): ServerTool[] {
    return [...this.#tools.values()].flatMap(({ types, uses, unlimited, resultTokens, hasUses }) =>
      types.map(({ type, version }) => {
        const isLimited = limits && TAKE_LIMIT.has(type)
        const isOpen = !hasUses || unlimited.length > 0
        const given = uses.filter((number) => number >= 1)
        // When several limits are given, the largest counts: parsers differ in which one they take.
        const known = [...given, ...(isLimited ? [DEFAULT_USES] : [])]
        const mostUses = isOpen && !isLimited ? null : largest(isOpen ? known : given)
        return { type, version, mostUses, mostResultTokens: largest(resultTokens) }
      }),
    )
  }

  /** The edits by which tools without a limit get `DEFAULT_USES`, with the types of the tools. */
  limits(): ToolLimits {
    const edits: ByteEdit[] = []
    const names = new Set<string>()
    for (const { types, start, unlimited, hasUses } of this.#tools.values()) {
      const limited = types.filter(({ type }) => TAKE_LIMIT.has(type))
      if (limited.length === 0 || (hasUses && unlimited.length === 0)) continue
      for (const { type } of limited) names.add(type)
      const replacement = encoder.encode(String(DEFAULT_USES))
      edits.push(...unlimited.map((place) => ({ ...place, replacement })))
      if (hasUses) continue
      const member = encoder.encode(`"max_uses":${DEFAULT_USES},`)
      edits.push({ start: start + 1, end: start + 1, replacement: member })
    }
    return { edits, names: [...names] }
  }

  /** The tool that gets one more member. @throws ApiError invalid_request for more than a request needs. */
  #toRead(index: unknown): ScannedTool {
    if (++this.#membersRead > MOST_MEMBERS) {
      throw invalidRequest('tools: the request has too many tools that run at the provider.')
    }
    const known = this.#tools.get(index)
    if (known) return known
    const tool = { types: [], start: 0, uses: [], unlimited: [], resultTokens: [], hasUses: false }
    this.#tools.set(index, tool)
    return tool
  }

  /** Value of a number, or of a string that a lenient parser would read as a number. */
  #number({ start, end }: Place): number {
    return Number(decoder.decode(this.#body.subarray(start, Math.min(end, start + 50))).replaceAll('"', ''))
  }
}

/** Limits that the gateway adds to a request. */
export interface ToolLimits {
  edits: readonly ByteEdit[]
  names: readonly string[]
}

export const NO_LIMITS: ToolLimits = { edits: [], names: [] }

const largest = (numbers: readonly number[]): number | null => {
  const known = numbers.filter((number) => number >= 1)
  return known.length > 0 ? Math.max(...known) : null
}
