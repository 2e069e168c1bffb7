import { invalidRequest } from '../../lib/api-error.ts'
import { scanJson } from '../../lib/json-scan.ts'
import { decodeString } from '../../lib/json-string.ts'
import { MAXIMUM_DEPTH } from '../../lib/json-visitor.ts'
import type { JsonPlace } from '../items/types/item-scan.ts'

/** Same limit as for the inputs of a run (`wire/agents`). It also fits into an answer of an object. */
const LONGEST_TEXT = 10_000_000
/** A message with more values is not parsed: its tree would be many times as large. */
const MOST_VALUES = 1_000

/**
 * The text that `input` has for an agent: a run has no conversation before it, so that it is a text, or one message of the
 * user with text only.
 * @param input the member, if there is one. @param elements of it, if it is an array.
 * @returns empty without an input. @throws ApiError invalid_request for any other input.
 */
export function textOfInput(
  body: Uint8Array,
  input: JsonPlace | undefined,
  elements: readonly JsonPlace[],
): string {
  if (input === undefined || input.kind === 'null') return ''
  if (input.end - input.start > LONGEST_TEXT) {
    throw invalidRequest(`input: may have at most ${LONGEST_TEXT} bytes for an agent.`)
  }
  if (input.kind === 'string') return decodeString(body, input.start + 1, input.end - 1)
  if (input.kind !== 'array') throw invalidRequest('input: must be a string or an array of items.')
  const [element] = elements
  if (element === undefined) return ''
  const text = elements.length === 1 ? textOfMessage(parsed(body, element)) : null
  if (text === null) {
    throw invalidRequest('input: an agent takes a text, or one message of the user that has text only.')
  }
  return text
}

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

function parsed(body: Uint8Array, { start, end }: JsonPlace): unknown {
  const source = body.subarray(start, end)
  let values = 0
  scanJson(source, {
    valueDepth: MAXIMUM_DEPTH,
    value() {
      if (++values > MOST_VALUES) throw invalidRequest(`input: may hold at most ${MOST_VALUES} values.`)
    },
  })
  return JSON.parse(decoder.decode(source))
}

/** Null for any other item. */
function textOfMessage(item: unknown): string | null {
  const { type = 'message', role, content } = (item ?? {}) as Record<string, unknown>
  if (type !== 'message' || role !== 'user') return null
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return null
  const texts = content.map((part) => (part?.type === 'input_text' ? part.text : null))
  return texts.every((text) => typeof text === 'string') ? texts.join('') : null
}
