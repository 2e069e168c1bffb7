import { type Json, objectOf } from '../json.ts'
import { toolInput } from '../tool-input.ts'
import { BlockFold } from './block-fold.ts'

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
  return { ...message, content: blocks.content(toolInput) }
}
