import type { Inspection, TextField } from '../../governance/dlp/inspection.ts'
import type { Direction } from '../../governance/dlp/types.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { type JsonKind, type JsonPath, MAXIMUM_DEPTH, scanJson } from '../../lib/json-scan.ts'
import type { Protocol } from './protocol.ts'
import type { RequestOutline } from './request-outline.ts'
import { inspectOwnValue } from './streamed-texts.ts'
import { isText, isUnreadable, OWN_DATA } from './text-fields.ts'

export interface RequestInspection {
  edits: ByteEdit[]
  /** Where there is content that no text engine reads, such as images. */
  uninspectable: ReadonlySet<Direction>
  /** Blocks of thinking that were changed, as `<message>.<block>`: what their provider signed is not what is sent. */
  changedThinking: ReadonlySet<string>
}

/** Shows every text of a request to the inspection. Removed members do not leave and are not inspected. */
export function inspectRequest(
  outline: RequestOutline,
  protocol: Protocol,
  inspection: Inspection,
): RequestInspection {
  const scan = new RequestScan(outline, protocol, inspection)
  scanJson(outline.body, scan)
  inspection.endUnit(outline.body.length)
  return scan
}

class RequestScan {
  readonly edits: ByteEdit[] = []
  readonly uninspectable = new Set<Direction>()
  readonly changedThinking = new Set<string>()
  readonly watched = OWN_DATA
  /** What a tool was called with may hold numbers and names at any depth. */
  readonly valueDepth: number
  readonly #outline: RequestOutline
  readonly #body: Uint8Array
  readonly #removed: ReadonlySet<string>
  readonly #inspection: Inspection
  readonly #active: boolean

  constructor(outline: RequestOutline, { removals }: Protocol, inspection: Inspection) {
    this.#outline = outline
    this.#body = outline.body
    this.#removed = new Set(removals)
    this.#inspection = inspection
    this.#active = !inspection.engine.passive
    this.valueDepth = this.#active ? MAXIMUM_DEPTH : 0
  }

  value(path: JsonPath, kind: JsonKind, start: number, end: number, memberStart: number): void {
    if (!this.#active) return
    // Prompts may be given as the numbers of their tokens.
    if (path[0] === 'prompt' && kind === 'number') this.uninspectable.add('request')
    if (path[0] !== 'messages' || path[4] !== 'input') return
    const place = { path, start, end, memberStart }
    this.edits.push(...inspectOwnValue(this.#inspection, place, kind, this.#body))
  }

  string(path: JsonPath, start: number, end: number, name: string, own: boolean): void {
    if (this.#removed.has(String(path[0]))) return
    const body = this.#body
    if (this.#active && isUnreadable(path, body, start, end, name, own)) {
      this.uninspectable.add(kindOf(path, this.#outline).kind)
    }
    if (!isText(path, body, start, end, name, own)) return
    const edit = this.#inspection.text(this.#fieldOf(path, name), body, start, end)
    if (!edit) return
    this.edits.push(edit)
    if (path[0] === 'messages' && path[4] === 'thinking') this.changedThinking.add(`${path[1]}.${path[3]}`)
  }

  #fieldOf(path: JsonPath, name: string): TextField {
    if (!this.#active) return { path, partial: false }
    const kind = kindOf(path, this.#outline)
    const isNamed = kind.kind === 'tool_arguments' && !kind.json
    return { path, partial: false, ...kind, ...(isNamed && { name }) }
  }
}

/** What a text of a request is: what tools were called with, what they answered, or what the caller says itself. */
function kindOf(path: JsonPath, { toolMessages }: RequestOutline): { kind: Direction; json: boolean } {
  const request = { kind: 'request', json: false } as const
  if (path[0] !== 'messages' || typeof path[1] !== 'number') return request
  const last = path[path.length - 1]
  if (last === 'arguments') return { kind: 'tool_arguments', json: true }
  if (toolMessages.has(path[1])) return { kind: 'tool_result', json: false }
  if (path[2] === 'tool_calls') return { kind: 'tool_arguments', json: false }
  // Blocks of the messages protocol: what a tool was called with, and blocks that hold content of their own.
  if (path[2] !== 'content') return request
  if (path[4] === 'input') return { kind: 'tool_arguments', json: false }
  return path[4] === 'content' ? { kind: 'tool_result', json: false } : request
}
