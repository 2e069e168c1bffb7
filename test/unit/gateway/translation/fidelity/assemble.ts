import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import type { Wire } from './features.ts'

/**
 * Puts answers together from the text of a stream, without any of the gateway's code, as a careful client would: what a
 * stream and a whole answer say can then be compared. An error in the stream becomes its `error`, the proper end `ended`.
 */
export function assembled(wire: Wire, stream: string): Json {
  const payloads = stream
    .split(/\r\n\r\n|\n\n|\r\r/)
    .map((frame) => frame.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:')))
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => line.slice('data:'.length).trim()).join('\n'))
  const ended = wire === 'messages' ? '"message_stop"' : '[DONE]'
  const events = payloads.filter((text) => text !== '[DONE]').map((text) => JSON.parse(text) as Json)
  const answer = wire === 'messages' ? message(events) : completion(events)
  const error = events.find((event) => event.error !== undefined && event.error !== null)?.error
  return { ...answer, ...(error ? { error } : {}), ended: payloads.some((text) => text.includes(ended)) }
}

/** Members of deltas that come in pieces; all others are sent once, or repeated. */
const PIECES = new Set(['content', 'refusal', 'reasoning_content', 'reasoning', 'arguments', 'text'])
const BY_INDEX = new Set(['tool_calls', 'choices'])

function completion(chunks: readonly Json[]): Json {
  const answer: Json = {}
  for (const { error: _error, ...chunk } of chunks) fold(answer, chunk)
  const { object, choices, ...rest } = answer
  if (object === undefined) return {}
  return {
    ...rest,
    object: object === 'chat.completion.chunk' ? 'chat.completion' : object,
    choices: ((choices as Json[] | undefined) ?? []).filter(Boolean).map(wholeChoice),
  }
}

function wholeChoice({ delta, ...choice }: Json): Json {
  if (delta === undefined) return choice
  const { tool_calls, ...message } = delta as Json
  if (!Array.isArray(tool_calls)) return { ...choice, message }
  const calls = (tool_calls as Json[]).filter(Boolean).map(({ index: _index, ...call }) => call)
  return { ...choice, message: { ...message, tool_calls: calls } }
}

function fold(into: Json, from: Json): void {
  for (const [name, value] of Object.entries(from)) {
    const before = into[name]
    if (BY_INDEX.has(name) && Array.isArray(value)) into[name] = byIndex(before, value)
    else if (Array.isArray(value)) into[name] = [...((before as unknown[] | undefined) ?? []), ...value]
    else if (typeof value === 'string' && typeof before === 'string' && PIECES.has(name)) {
      into[name] = before + value
    } else if (typeof value === 'object' && value !== null) {
      const inner = { ...(before as Json | undefined) }
      fold(inner, value as Json)
      into[name] = inner
    } else if (value !== null || before === undefined) into[name] = value
  }
}

function byIndex(before: unknown, entries: readonly Json[]): Json[] {
  const list = [...((before as Json[] | undefined) ?? [])]
  for (const entry of entries) {
    const index = typeof entry.index === 'number' ? entry.index : 0
    const known = { ...list[index] }
    fold(known, entry)
    list[index] = known
  }
  return list
}

function message(events: readonly Json[]): Json {
  const answer: Json = {}
  const blocks: Json[] = []
  const inputs: string[] = []
  for (const event of events) {
    const index = Number(event.index)
    if (event.type === 'message_start') Object.assign(answer, event.message)
    else if (event.type === 'content_block_start') blocks[index] = { ...(event.content_block as Json) }
    else if (event.type === 'content_block_delta') {
      addDelta(blocks[index] ?? {}, event.delta as Json, (json) => {
        inputs[index] = (inputs[index] ?? '') + json
      })
    } else if (event.type === 'message_delta') {
      const usage = { ...(answer.usage as Json), ...withoutNulls(event.usage as Json) }
      Object.assign(answer, event.delta, { usage })
    }
  }
  for (const [index, json] of inputs.entries()) {
    const block = blocks[index]
    if (block && json) block.input = parsed(json)
  }
  return events.some((event) => event.type === 'message_start') ? { ...answer, content: blocks } : {}
}

/** A text that was cut off stays as it is. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

function addDelta(block: Json, delta: Json, input: (json: string) => void): void {
  if (delta.type === 'text_delta') block.text = `${block.text ?? ''}${delta.text}`
  else if (delta.type === 'thinking_delta') block.thinking = `${block.thinking ?? ''}${delta.thinking}`
  else if (delta.type === 'signature_delta') block.signature = delta.signature
  else if (delta.type === 'input_json_delta') input(String(delta.partial_json))
  else if (delta.type === 'citations_delta') {
    block.citations = [...((block.citations as Json[] | undefined) ?? []), delta.citation]
  }
}

const withoutNulls = (members: Json): Json =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))
