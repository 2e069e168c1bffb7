import type { Inspection } from '../../governance/dlp/inspection.ts'
import type { Direction } from '../../governance/dlp/types.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { decodeString, type JsonPath, MAXIMUM_DEPTH, scanJson } from '../../lib/json-scan.ts'
import type { Protocol } from './protocol.ts'
import type { RequestOutline } from './request-outline.ts'
import { inspectNumber } from './streamed-texts.ts'
import { isText, OWN_DATA } from './text-fields.ts'

export interface RequestInspection {
  edits: ByteEdit[]
  /** Where there is content that no text engine reads, such as images. */
  uninspectable: ReadonlySet<Direction>
}

/** Types of parts and blocks whose content is not text. */
const UNREADABLE = new Set([
  'image_url',
  'image',
  'input_audio',
  'input_image',
  'document',
  'file',
  'container_upload',
  'input_file',
  'video_url',
  'input_video',
])
const LONGEST_TYPE_BYTES = 32

/** Shows every text of a request to the inspection. Removed members do not leave and are not inspected. */
export function inspectRequest(
  outline: RequestOutline,
  protocol: Protocol,
  inspection: Inspection,
): RequestInspection {
  const edits: ByteEdit[] = []
  const uninspectable = new Set<Direction>()
  const { body } = outline
  const active = !inspection.engine.passive
  const removed = new Set(protocol.removals)
  scanJson(body, {
    watched: OWN_DATA,
    // Numbers that a tool was called with may stand anywhere.
    valueDepth: active ? MAXIMUM_DEPTH : 0,
    value(path, kind, start, end) {
      if (!active || kind !== 'number' || path[0] !== 'messages' || !path.includes('input')) return
      const edit = inspectNumber(inspection, { path, start, end }, body)
      if (edit) edits.push(edit)
    },
    string(path, start, end, name, own) {
      if (removed.has(String(path[0]))) return
      if (active && name === 'type' && !own && isUnreadable(body, start, end)) {
        uninspectable.add(kindOf(path, outline).kind)
      }
      if (!isText(path, body, start, end, name, own)) return
      const field = active ? { path, partial: false, ...kindOf(path, outline) } : { path, partial: false }
      const edit = inspection.text(field, body, start, end)
      if (edit) edits.push(edit)
    },
  })
  inspection.endUnit(body.length)
  return { edits, uninspectable }
}

const isUnreadable = (body: Uint8Array, start: number, end: number): boolean =>
  end - start <= LONGEST_TYPE_BYTES && UNREADABLE.has(decodeString(body, start, end))

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
