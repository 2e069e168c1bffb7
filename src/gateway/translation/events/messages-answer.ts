import { type Json, objectOf, textOf } from '../../protocols/json.ts'
import { toolInput } from '../tool-input.ts'

/** @param events of one stream, as `MessagesEncoder` writes them. @returns the message with their contents. */
export function messageOf(events: Json[]): Json {
  const message: Json = {}
  const content: Json[] = []
  const inputs = new Map<Json, string>()
  for (const event of events) {
    const block = content[content.length - 1]
    if (event.type === 'message_start') Object.assign(message, event.message)
    else if (event.type === 'content_block_start') content.push({ ...objectOf(event.content_block) })
    else if (event.type === 'content_block_delta' && block) addDelta(block, objectOf(event.delta), inputs)
    else if (event.type === 'message_delta') {
      const usage = { ...objectOf(message.usage), ...objectOf(event.usage) }
      Object.assign(message, event.delta, { usage })
    }
  }
  for (const [block, json] of inputs) block.input = toolInput(json)
  return { ...message, content }
}

function addDelta(block: Json, delta: Json, inputs: Map<Json, string>): void {
  if (delta.type === 'text_delta') append(block, 'text', delta)
  else if (delta.type === 'thinking_delta') append(block, 'thinking', delta)
  else if (delta.type === 'signature_delta') block.signature = delta.signature
  else if (delta.type === 'input_json_delta') {
    inputs.set(block, (inputs.get(block) ?? '') + textOf(delta.partial_json))
  } else if (delta.type === 'citations_delta') {
    if (Array.isArray(block.citations)) block.citations.push(delta.citation)
    else block.citations = [delta.citation]
  }
}

function append(block: Json, member: string, delta: Json): void {
  block[member] = textOf(block[member]) + textOf(delta[member])
}
