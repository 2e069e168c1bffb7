import { type Json, objectOf, parseJson } from '../json.ts'
import { BlockFold } from './block-fold.ts'

/**
 * The vendor's own word for arguments that are not JSON
 * (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/fine-grained-tool-streaming).
 */
const INVALID_JSON = 'INVALID_JSON'

/** @param events of one stream, as we write them. @returns the message that they make. */
export function messageOf(events: Json[]): Json {
  const message: Json = {}
  const blocks = new BlockFold()
  for (const event of events) {
    if (event.type === 'message_start') Object.assign(message, event.message)
    else if (event.type === 'message_delta') {
      const usage = { ...objectOf(message.usage), ...objectOf(event.usage) }
      Object.assign(message, event.delta, { usage })
    } else blocks.event(event)
  }
  return { ...message, content: blocks.content(inputOf) }
}

/** Input is an object here. Arguments that are none reach the caller as they are, where it can see them. */
function inputOf(json: string): Json {
  try {
    const input = parseJson(json)
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return input as Json
  } catch {
    // Told below.
  }
  return { [INVALID_JSON]: json }
}
